"""While the server is away the terminal says so, and what may be done once only is held."""

import asyncio
from typing import Any

import pytest

from clawdforge.cli.output.lines import Item
from clawdforge.cli.repl.conversation import Conversation
from clawdforge.cli.repl.terminal import TerminalFace
from clawdforge.cli.target.options import Endpoint, Target
from clawdforge.client.errors import ForgeConnectionError

ROW: dict[str, Any] = {
    "session_id": "0123456789",
    "agent": "claude",
    "model": None,
    "permission_mode": "ask",
    "head": 0,
    "cwd": "/x",
}


class Shown(TerminalFace):
    """A terminal of which only the toolbar is looked at."""

    def __init__(self) -> None:
        super().__init__(Target(), "")
        self.said: list[str] = []

    def show(self, items: list[Item]) -> None:
        self.said += ["".join(words for _, words in item) for item in items if isinstance(item, list)]

    @property
    def toolbar(self) -> str:
        return "".join(part[1] for part in self._make_toolbar())


def never_sent() -> ForgeConnectionError:
    error = ForgeConnectionError("nobody there")
    error.sent = False
    return error


def begin(monkeypatch: pytest.MonkeyPatch) -> tuple[Conversation, Shown, asyncio.Event]:
    """A conversation, its terminal, and what brings its server back."""
    monkeypatch.setattr("clawdforge.cli.repl.conversation.RETRY_SECS", 0.001)
    face, back = Shown(), asyncio.Event()
    talk = Conversation(Target(), Endpoint("http://127.0.0.1:9", "t"), ROW, face)
    face._conversation = talk

    async def find() -> None:
        await back.wait()

    monkeypatch.setattr(talk, "_find_server", find)
    return talk, face, back


async def test_a_server_that_is_away_is_shown_and_commands_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk, face, back = begin(monkeypatch)
    assert (talk.lost_secs, "/help" in face.toolbar) == (None, True)
    done: list[str] = []

    async def work() -> None:
        done.append("once")

    async with asyncio.timeout(40):
        looking = asyncio.create_task(talk._reconnect())
        await asyncio.sleep(0)  # it runs up to its first wait
        held = asyncio.create_task(talk.hold(work))
        for _ in range(10):  # passes of the loop in which it would have been done
            await asyncio.sleep(0)
        assert f"Reconnecting ({talk.lost_secs} s)…" in face.toolbar
        assert (done, held.done()) == ([], False)
        back.set()
        await asyncio.gather(looking, held)
    assert (done, talk.lost_secs, "/help" in face.toolbar) == (["once"], None, True)
    assert face.said[-1] == "the server is back"
    await talk.close()


async def test_what_was_never_sent_is_done_again_and_what_was_sent_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk, face, _ = begin(monkeypatch)
    failures = [never_sent(), never_sent()]

    async def work() -> None:
        if failures:
            raise failures.pop()

    await talk.hold(work)
    assert face.said == ["the server does not answer; held until it is back"]
    failures.append(ForgeConnectionError("cut off"))
    with pytest.raises(ForgeConnectionError, match="cut off"):
        await talk.hold(work)
    await talk.close()
