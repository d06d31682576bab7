"""What becomes of the files of an undo when a folder is not known, a session goes on, or a node is silent."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.core.models.nodes import NodeRow
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.running.questions import NoAnswer
from clawdforge.core.running.undone_files import UndoneFiles
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.errors import Conflict, ForgeAPIError, SessionBusy, StoreUnavailable, Unsupported
from clawdforge.wire.event import EventType
from clawdforge.wire.session import CreateSession, UndoRequest
from tests.unit.supervised import APP, make_settings, say, submit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    """A server without its port."""
    async with asyncio.timeout(60), open_parts(make_settings(tmp_path)) as opened:
        yield opened
        await opened.supervisor.stop(0)


@pytest.fixture
async def session_id(parts: Parts) -> str:
    """A session whose last turn has changed its file."""
    made = (await parts.services.sessions.create(APP, CreateSession())).row.session_id
    await say(parts, made, "write a.txt first")
    await say(parts, made, "write a.txt second")
    return made


async def row_of(parts: Parts, session_id: str) -> SessionRow:
    return (await parts.services.sessions.get(APP, session_id)).row


async def test_files_are_put_back_only_in_the_folder_that_was_looked_at(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, known = parts.services.history._store, (await row_of(parts, session_id)).workspace_identity
    await store.write(APP, lambda tx: tx.change_session(session_id, workspace_identity=None))
    restored: list[str | None] = []

    async def restore(_: Snapshots, session: SessionRow, tree: str) -> None:
        assert tree
        restored.append(session.workspace_identity)

    monkeypatch.setattr(Snapshots, "restore", restore)
    await parts.services.history.undo(APP, session_id, UndoRequest(files=True))
    assert known is not None
    assert restored == [known]


@pytest.mark.parametrize("silence", [NoAnswer(), StoreUnavailable()], ids=["no answer", "no store"])
async def test_files_of_a_node_that_is_silent_are_put_back_before_the_next_turn(
    parts: Parts, session_id: str, silence: ForgeAPIError, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def say_nothing(*_: object) -> None:
        raise silence

    with monkeypatch.context() as patch:
        patch.setattr(UndoneFiles, "put_back", say_nothing)
        with pytest.raises(Conflict, match="do not undo again") as told:
            await parts.services.history.undo(APP, session_id, UndoRequest(files=True))
    assert (told.value.code, told.value.is_passing) == ("conflict", False)
    session = await row_of(parts, session_id)
    assert session.files_plan is not None
    file = Path(session.cwd) / "a.txt"
    assert file.read_text() == "second"
    await say(parts, session_id, "echo on")
    assert file.read_text() == "first"
    assert (await row_of(parts, session_id)).files_plan is None


async def test_a_caller_that_hangs_up_lets_nobody_in_while_files_are_put_back(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore, restoring, go_on = Snapshots.restore, asyncio.Event(), asyncio.Event()

    async def restore_late(snapshots: Snapshots, session: SessionRow, tree: str) -> None:
        restoring.set()
        await go_on.wait()
        await restore(snapshots, session, tree)

    monkeypatch.setattr(Snapshots, "restore", restore_late)
    undo = asyncio.create_task(parts.services.history.undo(APP, session_id, UndoRequest(files=True)))
    await restoring.wait()
    undo.cancel()
    await asyncio.wait({undo})
    with pytest.raises(SessionBusy, match="being put back already"):
        async with parts.services.history._folders.hold(await row_of(parts, session_id), within=0.01):
            raise AssertionError("the files are put back still")
    go_on.set()
    async with parts.services.history._folders.hold(await row_of(parts, session_id)):
        session = await row_of(parts, session_id)
    assert session.files_plan is None
    assert (Path(session.cwd) / "a.txt").read_text() == "first"


@pytest.mark.parametrize("is_running", [False, True], ids=["another plan", "a turn"])
async def test_a_wish_that_comes_late_leaves_the_files_as_they_are(
    parts: Parts, session_id: str, *, is_running: bool
) -> None:
    history, session = parts.services.history, await row_of(parts, session_id)
    tree = await history._undone._snapshots.tree_of(session, 1)
    if is_running:
        await submit(parts, session_id, "echo on\nhang")
        async for events in parts.services.log.follow(APP, session_id, session.head):
            if any(event.type == EventType.TEXT for event in events):
                break
        await history._store.write(APP, lambda tx: tx.change_session(session_id, files_plan=tree))
    with pytest.raises(SessionBusy, match="the session went on"):
        await history._undone.put_back(session, None, tree)
    assert (Path(session.cwd) / "a.txt").read_text() == "second"


async def test_a_node_of_an_older_version_is_not_asked(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, undone = parts.services.history._store, parts.services.history._undone
    row = NodeRow(node="b", name="b", folder="its", version="0", started_at=1)
    await store.write_system(lambda tx: tx.add_node(row))
    session = replace(await row_of(parts, session_id), folder="its")
    monkeypatch.setattr(undone, "_here", lambda: "ours")
    assert await undone.find_node(session) == "b", "it has told nothing yet"
    await store.write_system(lambda tx: tx.beat("b", {"agents": 1}))
    with pytest.raises(Unsupported, match="older version"):
        await undone.find_node(session)
    await store.write_system(lambda tx: tx.beat("b", {"agents": 1, "answers": True}))
    assert await undone.find_node(session) == "b"
