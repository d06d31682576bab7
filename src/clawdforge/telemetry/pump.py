"""A thread that hands things to a collector in batches. Nobody waits for it, and its memory is bounded.

A collector that refuses, hangs or is away costs what was meant for it, which is counted, and nothing else.
"""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

log = logging.getLogger(__name__)
MOST_SPANS: Final = 4096
MOST_BYTES: Final = 32 * 1024 * 1024
BATCH: Final = 512
BATCH_BYTES: Final = 4 * 1024 * 1024
"""A batch ends with what crosses either: while it is sent, it is in memory twice."""

LINGER_SECS: Final = 1.0
PAUSE_SECS: Final = 5.0
STOP_SECS: Final = 3.0
Send = Callable[[Any], bool]
"""Sends something and says whether it arrived. It may take long, and may raise anything."""


class Pump:
    def __init__(
        self, send_spans: Send, send_reading: Send, place: str, *, linger: float = LINGER_SECS
    ) -> None:
        """`place` is how the collector is named in the log."""
        self._send_spans = send_spans
        self._send_reading = send_reading
        self._place = place
        self._linger = linger
        self._changed = threading.Condition()
        self._loads: deque[tuple[Any, int, int]] = deque()  # what spans are made of, how many, how large
        self._waiting = 0  # spans
        self._bytes = 0  # of what waits
        self._reading: Any = None
        self._is_stopping = False
        self._is_failing = False
        self._counts: Counter[tuple[str, str]] = Counter()
        for what in ("span", "reading"):
            self._counts |= {(what, how): 0 for how in ("sent", "failed", "dropped")}
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def offer(self, load: Any, spans: int, size: int) -> None:
        """What so many spans are to be made of, of so many bytes: all of them or none."""
        with self._changed:
            is_full = self._waiting + spans > MOST_SPANS or self._bytes + size > MOST_BYTES
            if self._is_stopping or is_full:
                self._counts["span", "dropped"] += spans
                return
            self._loads.append((load, spans, size))
            self._waiting += spans
            self._bytes += size
            self._changed.notify()

    def show(self, reading: Any) -> None:
        """Only the last one counts: one that was not sent is dropped."""
        with self._changed:
            if self._reading is not None or self._is_stopping:
                self._counts["reading", "dropped"] += 1
            self._reading = None if self._is_stopping else reading
            self._changed.notify()

    def miss(self, spans: int) -> None:
        with self._changed:
            self._counts["span", "dropped"] += spans

    def counts(self) -> dict[tuple[str, str], int]:
        with self._changed:
            return dict(self._counts)

    def stop(self, within: float = STOP_SECS) -> None:
        """Send what is left, as far as that can be done in time. The thread ends with the process at last."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join(within)

    def _run(self) -> None:
        while True:
            loads, spans, reading = self._take()
            if not loads and reading is None:
                return
            sent = self._try("span", spans, self._send_spans, loads) if loads else True
            if reading is not None and (sent or not self._is_stopping):
                sent = self._try("reading", 1, self._send_reading, reading) and sent
            if not sent:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_stopping, PAUSE_SECS)

    def _take(self) -> tuple[list[Any], int, Any]:
        """The next batch, how many spans it will be, and a reading, when there is one; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._loads or self._reading is not None or self._is_stopping)
            self._changed.wait_for(lambda: self._is_batch() or self._is_stopping, self._linger)
            loads: list[Any] = []
            spans = size = 0
            while self._loads and spans < BATCH and size < BATCH_BYTES:
                load, count, weight = self._loads.popleft()
                loads.append(load)
                spans += count
                size += weight
            self._waiting -= spans
            self._bytes -= size
            reading, self._reading = self._reading, None
            return loads, spans, reading

    def _is_batch(self) -> bool:
        return self._waiting >= BATCH or self._bytes >= BATCH_BYTES

    def _try(self, what: str, count: int, send: Send, load: Any) -> bool:
        why = ""
        try:
            sent = send(load)
        except Exception as error:  # noqa: BLE001 - the top of a thread, which tries the next batch
            sent, why = False, f" ({type(error).__name__})"
        with self._changed:
            self._counts[what, "sent" if sent else "failed"] += count
        if sent and self._is_failing:
            log.info("telemetry arrives at %s again", self._place)
        elif not sent and not self._is_failing:
            log.warning("telemetry does not arrive at %s%s; what is lost is counted", self._place, why)
        self._is_failing = not sent
        return sent
