"""The quiet app: its GETs, turns and streams are checked and timed, all three side by side."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from proofs.kit.client import Client, Reader
from proofs.kit.http import Cut, Reply, request
from proofs.kit.report import Run
from proofs.kit.server import Stuck

KINDS = ("get", "turn", "stream")
PAUSE_SECS = {"get": 0.05, "turn": 0.1, "stream": 0.1}
"""With a fifth of these it took 60 % of the server for itself, and was as noisy as its neighbours."""
SHORT_COUNTS = {"get": 6, "turn": 1, "stream": 1}
ANSWER_SECS = 120.0
FIRST_ERROR = 500
CHUNKS = 5


@dataclass
class Times:
    """Seconds, by kind."""

    found: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def percentile(self, kind: str, part: float) -> float:
        times = sorted(self.found[kind])
        return times[min(len(times) - 1, int(len(times) * part))] if times else float("inf")


class Quiet:
    def __init__(self, run: Run, port: int, token: str) -> None:
        self._run = run
        self._port = port
        self._token = token
        self._client = Client(port, token)
        self._sessions: dict[str, str] = {}
        self._reader: Reader | None = None
        self._reading: asyncio.Task[None] | None = None
        self._said = 0

    async def settle_in(self) -> None:
        for kind in KINDS:
            self._sessions[kind] = await self._client.session(retention="keep", title=f"quiet {kind}")
        self._reader = Reader(self._client, self._sessions["stream"])
        self._reading = asyncio.create_task(self._reader.follow())
        for kind in KINDS:
            await self._once(kind)

    async def leave(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def live(self, seconds: float | None) -> Times:
        """Work for so long, or without a clock: a few times of each."""
        times = Times()
        end = time.monotonic() + (seconds or 0)

        async def repeat(kind: str) -> None:
            count = 0
            while time.monotonic() < end if seconds else count < SHORT_COUNTS[kind]:
                begun = time.monotonic()
                await self._once(kind)
                times.found[kind].append(time.monotonic() - begun)
                count += 1
                await asyncio.sleep(PAUSE_SECS[kind])

        await asyncio.gather(*(repeat(kind) for kind in KINDS))
        assert self._reader is not None
        for fault in self._reader.faults:
            self._run.violate(fault)
        return times

    async def _once(self, kind: str) -> None:
        does: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "get": self._get,
            "turn": self._turn,
            "stream": self._stream,
        }
        await does[kind]()

    async def _get(self) -> None:
        session = self._sessions["get"]
        reply = await self._ask("GET", f"/sessions/{session}")
        good = reply is not None and reply.ok and reply.json()["title"] == "quiet get"
        self._run.check(good, f"a quiet GET was answered {reply}")

    async def _turn(self) -> None:
        self._said += 1
        said = f"quiet {self._said}"
        reply = await self._ask(
            "POST", f"/sessions/{self._sessions['turn']}/turn", {"prompt": f"echo {said}"}
        )
        good = (
            reply is not None
            and reply.ok
            and said in [event.get("content") for event in reply.json()["events"]]
        )
        self._run.check(good, f"a quiet turn was answered {reply}")

    async def _stream(self) -> None:
        """From a prompt to its end at a reader."""
        reader = self._reader
        assert reader is not None
        seen = reader.last
        prompt = {"prompt": f"chunks {CHUNKS} 20"}
        reply = await self._ask("POST", f"/sessions/{self._sessions['stream']}/turns", prompt)
        if not self._run.check(reply is not None and reply.ok, f"a quiet prompt was answered {reply}"):
            return
        end = time.monotonic() + ANSWER_SECS
        while not any(b'"turn.ended"' in data for data in reader.copy[seen:]):
            if time.monotonic() > end:
                raise Stuck(f"a quiet reader was starved for {ANSWER_SECS:g} s")
            await asyncio.sleep(0.001)
        self._run.check(
            any(b'"text"' in data for data in reader.copy[seen:]),
            f"a quiet reader saw no text: {reader.copy[seen:]!r}"[:500],
        )

    async def _ask(self, method: str, path: str, body: Any = None) -> Reply | None:
        try:
            reply = await request(self._port, method, path, self._token, body=body, seconds=ANSWER_SECS)
        except Cut as cut:
            self._run.violate(f"the quiet app got no answer: {cut}")
            return None
        if reply.status >= FIRST_ERROR:
            self._run.violate(f"the quiet app got {reply.status}: {reply.body[:200]!r}")
        return reply
