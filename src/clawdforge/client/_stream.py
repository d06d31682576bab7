"""What a reader of live events has seen and may still expect: cursor logic without I/O."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from clawdforge.client import _lazy as lazy
from clawdforge.client._reconnects import Reconnect
from clawdforge.client._retry import Retry
from clawdforge.client.errors import StreamBroken

if TYPE_CHECKING:
    from clawdforge.wire.event_kinds import AnyEvent
    from clawdforge.wire.sse import Frame


class Gap(Exception):
    """An event is missing before this one; the stream must be read again from the last one seen."""


class Cursor:
    """Follows one session's log. Yields each event once, in order, whatever connections come and go.

    `last_seq` is where to go on. When nothing was heard for `patience_secs` in spite of new attempts,
    the stream is broken.
    """

    def __init__(
        self,
        after: int,
        *,
        patience_secs: float,
        clock: Callable[[], float] = time.monotonic,
        retry: Retry | None = None,
    ) -> None:
        self.last_seq = after
        self._patience = patience_secs
        self._clock = clock
        self._pauses = retry or Retry(first_secs=0.1, most_secs=2.0)
        self._attempt = 0
        self._lost_at: float | None = None
        self._gap_after: int | None = None
        self._lost: Reconnect | None = None

    def note_life(self) -> Reconnect | None:
        """Note that the server is alive, because bytes came, if only a heartbeat; tell if it was lost."""
        lost, self._lost = self._lost, None
        away = 0.0 if self._lost_at is None else self._clock() - self._lost_at
        self._lost_at = None
        return lost and Reconnect(lost.why, lost.attempt, away, is_back=True)

    def note_loss(self, why: str) -> Reconnect:
        """What there is to tell before the pause."""
        away = 0.0 if self._lost_at is None else self._clock() - self._lost_at
        self._lost = Reconnect(why, self._lost.attempt + 1 if self._lost else 1, away, is_back=False)
        return self._lost

    def accept(self, frame: Frame) -> AnyEvent | None:
        """The event of this frame, or None when it was seen before or is none of ours."""
        try:
            event = lazy.event_kinds.narrow(lazy.event.Event.model_validate_json(frame.data))
        except ValueError:
            return None
        if event.seq <= self.last_seq:
            return None
        if event.seq != self.last_seq + 1:
            self._report_gap(event.seq)
        self.last_seq = event.seq
        self._attempt = 0
        return event

    def pause(self, why: str) -> float:
        """How long to wait before connecting again; raises when the server has been silent for too long."""
        now = self._clock()
        if self._lost_at is None:
            self._lost_at = now
        elif now - self._lost_at >= self._patience:
            raise StreamBroken(f"the event stream broke and did not come back: {why}", self.last_seq)
        pause = self._pauses.pause(self._attempt)
        self._attempt += 1
        return pause

    def _report_gap(self, seq: int) -> NoReturn:
        why = f"event {seq} came after {self.last_seq}"
        if self._gap_after == self.last_seq:
            raise StreamBroken(f"events are missing: {why}", self.last_seq)
        self._gap_after = self.last_seq
        raise Gap(why)
