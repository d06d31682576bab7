"""Writes down what clients ask and are told, on one clock, and through the deaths of the server."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proofs.kit.http import Cut, Reply, request
from proofs.linear.checker import NEVER, Op
from proofs.linear.reads import READS

SECONDS = 60.0


@dataclass
class Entry:
    """An operation as it is being recorded; `life` is the server's life in which it was sent."""

    number: int
    client: str
    kind: str
    invoked: int
    given: Mapping[str, Any]
    life: int
    answered: int | None = None
    answer: Any = None
    settled: int = NEVER


@dataclass
class World:
    """The server that all sessions are on, its deaths, and the clock."""

    port: int
    token: str
    up: asyncio.Event
    deaths: list[int] = field(default_factory=list)
    crashes: list[Op] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    answers: int = 0
    _ticks: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)

    def tick(self) -> int:
        return self._ticks()

    def record_death(self) -> None:
        """Nothing that was sent before can take effect any more; what is found then comes a tick later."""
        self.deaths.append(self.tick())
        self.tick()

    def record_recovery(self, *, whole: bool) -> None:
        """Of a recovery that was itself cut short nobody knows whether it was written."""
        died, until = (self.deaths[-1], self.tick()) if whole else self.deaths[-2:]
        number = -len(self.crashes) - 1
        self.crashes.append(Op(number, "server", "crash", died + 1, {}, until=until, must=whole))


class Recorder:
    """The history of one session."""

    def __init__(self, world: World, session: str) -> None:
        self.session = session
        self.world = world
        self.counts = Counter[str]()
        self._begun = world.tick()
        self._entries: list[Entry] = []

    async def ask(
        self,
        client: str,
        kind: str,
        given: Mapping[str, Any],
        call: tuple[str, str, Any],
        shape: Callable[[Any], Any],
        *,
        key: str | None = None,
        seconds: float = SECONDS,
    ) -> Any:
        """Send one request and record it; its answer, or None if there was none. Less time is a hang-up."""
        world = self.world
        entry = Entry(len(self._entries) + 1, client, kind, world.tick(), given, len(world.deaths))
        self._entries.append(entry)
        method, path, body = call
        headers = {"Idempotency-Key": key} if key else {}
        try:
            reply = await request(
                world.port,
                method,
                f"/sessions/{self.session}{path}",
                world.token,
                body=body,
                headers=headers,
                seconds=seconds,
            )
        except Cut as cut:
            self.counts["cut off"] += 1
            dying = not world.up.is_set() or entry.life < len(world.deaths)
            if seconds == SECONDS and not dying:
                world.unanswered.append(f"{self.session[:8]}: {kind} {dict(given)} was not answered: {cut}")
            return None
        entry.answer = _shape(reply, shape)
        entry.answered = world.tick()
        world.answers += 1
        self.counts[kind if reply.ok else f"{kind} refused"] += 1
        if key and (reply.ok or entry.answer[0] == "ended"):
            self._settle(key, entry.answered)
        return entry.answer

    async def peek(self, path: str) -> Reply:
        """A part of the session, for a client that waits for something; not recorded."""
        return await request(self.world.port, "GET", f"/sessions/{self.session}{path}", self.world.token)

    def note(self, kind: str, answer: Any) -> None:
        """Record what is known from elsewhere."""
        now = self.world.tick
        self._entries.append(
            Entry(len(self._entries) + 1, "us", kind, now(), {}, len(self.world.deaths), now(), answer)
        )

    def history(self) -> list[Op]:
        """All that can matter: a read that nobody was answered cannot."""
        deaths = self.world.deaths
        ops = [
            Op(
                entry.number,
                entry.client,
                entry.kind,
                entry.invoked,
                entry.given,
                entry.answered,
                entry.answer,
                min(entry.settled, deaths[entry.life] if entry.life < len(deaths) else NEVER),
            )
            for entry in self._entries
            if entry.answered is not None or entry.kind not in READS
        ]
        crashes = [crash for crash in self.world.crashes if crash.invoked > self._begun]
        return sorted(ops + crashes, key=lambda op: op.invoked)

    def _settle(self, key: str, at: int) -> None:
        """Once a key is answered, an earlier request with it that was cut off can change nothing."""
        for entry in self._entries:
            if entry.answered is None and entry.given.get("key") == key and entry.invoked < at:
                entry.settled = min(entry.settled, at)


def _shape(reply: Reply, shape: Callable[[Any], Any]) -> Any:
    body = reply.json()
    if reply.ok:
        return shape(body)
    if "turn_index" in body:  # a turn that was waited for and ended badly
        return "ended", body["turn_index"], ENDINGS.get(body["code"], body["code"])
    return "refused", body["code"]


ENDINGS = {"agent_failed": "failed", "turn_interrupted": "interrupted"}
