"""What becomes of the files of an undo when a folder is not known, a session goes on, or a node is silent."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.models.rows import SessionRow
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.session import CreateSession, UndoRequest
from tests.unit.supervised import APP, make_settings, say

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
