"""What a fork leaves behind that was broken off, or of which nobody knows whether it was stored."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.ports import Tx
from clawdforge.core.rules.sessions import SessionState
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.parts import Parts, open_parts
from clawdforge.stores.sqlite import sets
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.session import CreateSession, ForkRequest
from clawdforge.wire.turn import Outcome, TurnRequest
from tests.unit.supervised import make_settings

APP = LOCAL_APP


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    """A server without its port."""
    async with asyncio.timeout(120), open_parts(make_settings(tmp_path)) as opened:
        yield opened
        await opened.supervisor.stop(0)


async def say(parts: Parts, session_id: str, prompt: str) -> None:
    turns = parts.services.turns
    submitted = await turns.submit(APP, session_id, TurnRequest(prompt=prompt), None)
    turn = await turns.wait(APP, session_id, submitted.turn.turn_index)
    assert turn.outcome is Outcome.COMPLETED, turn


async def begin(parts: Parts) -> str:
    session_id = (await parts.services.sessions.create(APP, CreateSession())).row.session_id
    await say(parts, session_id, "echo common")
    return session_id


@pytest.mark.parametrize("end", [StoreUnavailable, asyncio.CancelledError])
@pytest.mark.parametrize("rows", [1, 60])
async def test_a_fork_that_was_stored_without_telling_keeps_its_home(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, end: type[BaseException]
) -> None:
    """Whether in one transaction or in several, and whether the store or the caller is gone.

    It goes on with the memory of its agent.
    """
    monkeypatch.setattr(sets, "COPY_ROWS", rows)
    session_id = await begin(parts)
    store = parts.services.forks._store
    write = store.write_slice

    async def write_and_say_nothing(app: str, work: Callable[[Tx], Any]) -> Any:
        result = await write(app, work)
        if isinstance(result, SessionState):
            raise end
        return result

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_slice", write_and_say_nothing)
        with pytest.raises(end):
            await parts.services.forks.fork(APP, session_id, ForkRequest())
    found, _ = await store.read(APP, lambda view: view.sessions(SessionQuery()))
    (fork,) = [row.session_id for row in found if row.forked_from == session_id]
    assert (tmp_path / "data" / "homes" / fork).is_dir()
    await say(parts, fork, "echo more")
    events = await store.read(APP, lambda view: view.events(fork, after=0, limit=100, max_bytes=1 << 20))
    started = [event.decode() for event in events if event.type == EventType.CONTEXT_STARTED]
    assert [context["how"] for context in started] == ["loaded"]


async def test_a_fork_that_is_broken_off_leaves_no_home(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = await begin(parts)

    async def hang_up(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(Snapshots, "branch", hang_up)
    with pytest.raises(asyncio.CancelledError):
        await parts.services.forks.fork(APP, session_id, ForkRequest())
    assert [path.name for path in (tmp_path / "data" / "homes").iterdir()] == [session_id]
