"""A session that an editor has open, with a server that loses replies, refuses, and is slow."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

from clawdforge.client.errors import ForgeConnectionError
from clawdforge.client.models import CancelReply, TurnAccepted
from clawdforge.faces.acp.link import Link
from clawdforge.faces.acp.live import LiveSession
from clawdforge.faces.acp.prompts import Prompt
from clawdforge.wire.base import Json
from clawdforge.wire.event import Event
from clawdforge.wire.turn import IfBusy, TurnState

WAIT = 20.0


class Server:
    """Its one session: a log that is read to its end, and then waited for."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.asked: list[Any] = []
        self.prompts: list[Any] = []
        self.submitted = asyncio.Event()
        self.may_submit = asyncio.Event()
        self.may_submit.set()
        self.on_cancel: Callable[[], None] = lambda: None
        self._came = asyncio.Event()

    def say(self, kind: str, turn: int = 1, **fields: Any) -> None:
        event = {"seq": len(self.log) + 1, "ts": "2026-01-01T00:00:00Z", "turn": turn, "type": kind, **fields}
        self.log.append(Event.model_validate(event))
        self._came.set()

    async def submit(self, _text: str, *_: Any, **__: Any) -> TurnAccepted:
        self.submitted.set()
        await self.may_submit.wait()
        return TurnAccepted(
            session_id="s", turn_index=1, state=TurnState.RUNNING, if_busy=IfBusy.QUEUE, head=0
        )

    async def cancel(self, *, turn: int | None = None) -> CancelReply:
        self.asked.append(turn)
        self.on_cancel()
        return CancelReply(session_id="s", cancelled=1)

    async def turns(self, after: int) -> AsyncIterator[Any]:
        self.asked.append(f"turns after {after}")
        for found in self.prompts:
            yield found

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        while True:
            self._came.clear()
            for event in self.log[after:]:
                yield event
                after = event.seq
            await self._came.wait()


class Client:
    """One of those that are made whenever the server was lost."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def attach(self, _session_id: str) -> Server:
        return self._server

    async def healthz(self) -> None:
        """It is there."""


class OneServer(Link):
    def __init__(self, server: Server) -> None:
        super().__init__(lambda: ("", ""))
        self._server = server

    async def _connect(self) -> Any:
        return Client(self._server)


class Shown:
    def __init__(self) -> None:
        self.updates: list[Json] = []

    async def show(self, _session_id: str, update: Json) -> None:
        self.updates.append(update)


def open_session(server: Server) -> tuple[LiveSession, Shown]:
    shown = Shown()
    live = LiveSession(OneServer(server), cast("Any", shown), "s")
    live.cursor = 0
    return live, shown


async def test_a_stop_whose_reply_is_lost_ends_no_other_turn() -> None:
    server = Server()
    live, _ = open_session(server)

    def lose_the_first() -> None:
        server.on_cancel = lambda: server.say("turn.ended", outcome="cancelled")
        server.say("turn.started", turn=2)  # somebody else's, while ours has ended unseen
        raise ForgeConnectionError("the reply was lost")

    server.on_cancel = lose_the_first
    async with asyncio.timeout(WAIT):
        running = asyncio.create_task(live.prompt(lambda: Prompt("go")))
        await server.submitted.wait()
        live.cancel()
        assert (await running)["stopReason"] == "cancelled"
        await live.pause()
    stops = [asked for asked in server.asked if asked != "turns after 1"]
    assert stops == [1, 1], "a stop that names no turn ends whichever runs"
