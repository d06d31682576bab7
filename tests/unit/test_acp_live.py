"""A session that an editor has open, with a server that loses replies, refuses, and is slow."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.client.errors import ForgeAPIError, ForgeConnectionError
from clawdforge.client.models import CancelReply, TurnAccepted
from clawdforge.faces.acp import live as live_module
from clawdforge.faces.acp import updates
from clawdforge.faces.acp.live import LiveSession
from clawdforge.faces.acp.prompts import Prompt
from clawdforge.faces.link import Link
from clawdforge.jsonrpc.rpc import RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.event import Event
from clawdforge.wire.turn import IfBusy, TurnState

WAIT = 10.0


class Server:
    """Its one session: a log that is read to its end, and then waited for."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.asked: list[Any] = []
        self.prompts: list[Any] = []
        self.refusals: list[ForgeAPIError] = []
        self.submitted = asyncio.Event()
        self.may_submit = asyncio.Event()
        self.may_submit.set()
        self.on_cancel: Callable[[], None] = lambda: None
        self.breaks_after: int | None = None  # the number of an event behind which it is lost once
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
        if self.refusals:
            raise self.refusals.pop()
        for found in self.prompts:
            yield found

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        while True:
            self._came.clear()
            for event in self.log[after:]:
                yield event
                after = event.seq
                if after == self.breaks_after:
                    self.breaks_after = None
                    raise ForgeConnectionError("the server was killed")
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
        self.came = asyncio.Event()

    async def show(self, _session_id: str, update: Json) -> None:
        self.updates.append(update)
        self.came.set()


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


def refusal(status: int) -> ForgeAPIError:
    return ForgeAPIError("no", status_code=status, code="", body=None, request_id=None)


async def test_what_is_refused_for_a_while_is_asked_again_and_nothing_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_module, "PAUSE_SECS", 0)
    server = Server()
    server.refusals = [refusal(503), refusal(429)]
    server.prompts = [SimpleNamespace(turn_index=2, prompt="theirs")]
    live, shown = open_session(server)
    server.say("turn.started", turn=2)
    server.say("text", turn=2, content="answer", agent_session_id="a")
    live.follow()
    async with asyncio.timeout(WAIT):
        while len(shown.updates) < 2:
            await shown.came.wait()
            shown.came.clear()
        assert [update["content"]["text"] for update in shown.updates] == ["theirs", "answer"]
        assert live.is_read
        await live.pause()


async def test_a_server_that_is_found_again_is_read_from_where_it_was_lost() -> None:
    server = Server()
    live, shown = open_session(server)
    server.breaks_after = 3
    server.say("turn.started", turn=2)
    for word in ("one", "two", "three"):
        server.say("text", turn=2, content=word, agent_session_id="a")
    live.follow()
    async with asyncio.timeout(WAIT):
        while live.cursor != 4:
            await shown.came.wait()
            shown.came.clear()
            await asyncio.sleep(0)
        await live.pause()
    assert [update["content"]["text"] for update in shown.updates] == ["one", "two", "three"]


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (503, 3)])
async def test_a_refusal_that_stays_ends_the_reading(
    monkeypatch: pytest.MonkeyPatch, status: int, asked: int
) -> None:
    monkeypatch.setattr(live_module, "PAUSE_SECS", 0)
    monkeypatch.setattr(live_module, "MAX_REFUSALS", 2)
    server = Server()
    server.refusals = [refusal(status) for _ in range(10)]
    live, _ = open_session(server)
    server.say("turn.started", turn=2)
    live.follow()
    async with asyncio.timeout(WAIT):
        assert live._reader is not None
        await asyncio.wait([live._reader])
    assert server.asked == ["turns after 1"] * asked


async def test_a_close_waits_for_a_prompt_that_is_being_sent_and_stops_it() -> None:
    server = Server()
    server.may_submit.clear()
    server.on_cancel = lambda: server.say("turn.ended", outcome="cancelled")
    live, _ = open_session(server)
    async with asyncio.timeout(WAIT):
        running = asyncio.create_task(live.prompt(lambda: Prompt("go")))
        await server.submitted.wait()
        ending = asyncio.create_task(live.end())
        asyncio.get_running_loop().call_soon(server.may_submit.set)
        await ending
        assert running.done()
        assert (await running)["stopReason"] == "cancelled"
    assert not live.is_read


async def test_a_prompt_that_is_sent_only_after_the_close_is_stopped_and_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_module, "END_SECS", 0)
    server = Server()
    server.may_submit.clear()
    live, _ = open_session(server)
    async with asyncio.timeout(WAIT):
        running = asyncio.create_task(live.prompt(lambda: Prompt("go")))
        await server.submitted.wait()
        await live.end()
        server.may_submit.set()
        with pytest.raises(RpcError, match="no longer read"):
            await running
    assert server.asked == [1], "its turn goes on"
    assert not live.is_read, "a reader was left behind"


async def test_a_remark_is_shown_once_with_the_next_prompt() -> None:
    server = Server()
    live, shown = open_session(server)
    live.remark = "some servers are missing"
    async with asyncio.timeout(WAIT):
        for _ in range(2):
            running = asyncio.create_task(live.prompt(lambda: Prompt("go")))
            await server.submitted.wait()
            server.submitted.clear()
            server.say("turn.ended", outcome="completed")
            await running
        await live.pause()
    assert shown.updates == [updates.of_thought("some servers are missing")]
