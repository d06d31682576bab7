"""When nothing waits behind a turn nobody looks for more, and no prompt is forgotten for that."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from clawdforge.core.running.next_turns import NextTurns
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.session import CreateSession
from clawdforge.wire.turn import Outcome, TurnState
from tests.unit.supervised import APP, make_settings, say, submit

LONG = 60.0


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with asyncio.timeout(LONG), open_parts(make_settings(tmp_path)) as opened:
        yield opened
        await opened.supervisor.stop(0)


@pytest.fixture
async def session_id(parts: Parts) -> str:
    state = await parts.services.sessions.create(APP, CreateSession())
    return state.row.session_id


async def test_a_prompt_that_is_written_after_the_last_end_is_run(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waited when the turn before it ended, and its worker does not look again by itself."""
    copy, written = HomeFolders.copy_home, asyncio.Event()

    async def copy_late(*given: Any) -> None:
        await written.wait()
        await copy(*given)

    monkeypatch.setattr(HomeFolders, "copy_home", copy_late)
    await say(parts, session_id, "echo one")
    second = await submit(parts, session_id, "echo two")
    assert (await parts.services.turns.get(APP, session_id, second)).state is TurnState.QUEUED
    written.set()
    assert (await parts.services.turns.wait(APP, session_id, second)).outcome is Outcome.COMPLETED


async def test_after_the_last_turn_nobody_looks_for_another(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = AsyncMock(side_effect=NextTurns._try_start)
    monkeypatch.setattr(NextTurns, "_try_start", looks)
    turn_index = await say(parts, session_id, "echo one")
    await parts.supervisor.wait_for_copy(session_id, turn_index)
    assert not parts.supervisor.has_worker(session_id)
    looks.assert_not_called()
