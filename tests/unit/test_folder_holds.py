"""Who waits while the files of a folder are put back: turns, forks, new sessions, and another restore."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.running.folder_holds import FolderHolds
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.errors import Conflict, SessionBusy, Unsupported
from clawdforge.wire.session import CreateSession, ForkRequest
from clawdforge.wire.turn import Outcome, TurnRequest, TurnState
from tests.unit.supervised import make_settings

APP = LOCAL_APP


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    """A server without its port."""
    (tmp_path / "work" / "inner").mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    async with asyncio.timeout(60), open_parts(make_settings(tmp_path)) as opened:
        yield opened
        await opened.supervisor.stop(0)


@pytest.fixture
def folders(parts: Parts) -> FolderHolds:
    return parts.services.history._folders


async def make(parts: Parts, cwd: Path) -> SessionRow:
    return (await parts.services.sessions.create(APP, CreateSession(cwd=str(cwd)))).row


async def test_a_turn_of_another_session_in_the_folder_waits(
    parts: Parts, folders: FolderHolds, tmp_path: Path
) -> None:
    outer, inner = await make(parts, tmp_path / "work"), await make(parts, tmp_path / "work" / "inner")
    async with folders.hold(inner):
        turn = await parts.services.turns.submit(APP, outer.session_id, TurnRequest(prompt="echo hi"), None)
        waiting = await parts.services.turns.get(APP, outer.session_id, turn.turn.turn_index)
        assert waiting.state is TurnState.QUEUED
    ended = await parts.services.turns.wait(APP, outer.session_id, turn.turn.turn_index)
    assert ended.outcome is Outcome.COMPLETED


async def test_nobody_comes_into_a_folder_that_is_held(
    parts: Parts, folders: FolderHolds, tmp_path: Path
) -> None:
    session = await make(parts, tmp_path / "work")
    closed = await make(parts, tmp_path / "work")
    await parts.services.sessions.close(APP, closed.session_id)
    async with folders.hold(session):
        coming = [
            asyncio.ensure_future(work)
            for work in (
                make(parts, tmp_path / "work" / "inner"),
                parts.services.forks.fork(APP, session.session_id, ForkRequest()),
                parts.services.sessions.reopen(APP, closed.session_id),
            )
        ]
        await make(parts, tmp_path / "beside")
        assert not any(task.done() for task in coming)
    await asyncio.gather(*coming)


async def test_two_restores_in_one_folder_come_one_after_the_other(
    parts: Parts, folders: FolderHolds, tmp_path: Path
) -> None:
    outer, inner = await make(parts, tmp_path / "work"), await make(parts, tmp_path / "work" / "inner")
    async with folders.hold(outer):
        with pytest.raises(SessionBusy, match="being put back already"):
            async with folders.hold(inner, within=0.01):
                raise AssertionError("both at once")
    async with folders.hold(inner):
        pass


async def test_a_session_that_is_being_stored_is_waited_for(
    parts: Parts, folders: FolderHolds, tmp_path: Path
) -> None:
    session = await make(parts, tmp_path / "work")
    async with folders.enter(session):
        with pytest.raises(SessionBusy):
            async with folders.hold(session, within=0.01):
                raise AssertionError("somebody was on the way in")


async def test_two_turns_that_put_back_files_of_one_folder_take_turns(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finds the other at work, without an agent: neither may wait for the end of the other's turn."""
    sessions = [await make(parts, tmp_path / "work"), await make(parts, tmp_path / "work" / "inner")]
    store = parts.services.history._store
    restore = Snapshots.restore
    at_work: list[str] = []

    async def restore_alone(snapshots: Snapshots, session: SessionRow, tree: str) -> None:
        assert at_work == []
        at_work.append(session.session_id)
        with contextlib.suppress(Conflict, Unsupported):  # there is no such tree
            await restore(snapshots, session, tree)
        at_work.remove(session.session_id)

    monkeypatch.setattr(Snapshots, "restore", restore_alone)
    for one in sessions:
        await store.write(APP, lambda tx, one=one: tx.change_session(one.session_id, files_plan="0" * 40))  # type: ignore[misc]
    turns = parts.services.turns
    for one in sessions:
        await turns.submit(APP, one.session_id, TurnRequest(prompt="echo hi"), None)
    ended = [await turns.wait(APP, one.session_id, 1) for one in sessions]
    assert [turn.outcome for turn in ended] == [Outcome.COMPLETED] * 2, ended
