"""Attending a turn: it begins in its app's turn on the event loop, and is broken off for certain."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.models.agents import Answer
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.running.attendant import break_off
from clawdforge.core.running.pool import AgentPool
from clawdforge.drivers.acp.driver import AcpAgent
from clawdforge.parts import open_parts
from clawdforge.wire.session import CreateSession
from clawdforge.wire.turn import Outcome
from tests.unit.supervised import APP, make_settings, say, submit


async def test_a_cancel_that_was_lost_is_repeated() -> None:
    """As Python 3.11 loses one when what was waited for comes at the same moment; that cannot be timed."""
    pool = AgentPool(1, 60)
    seat = await pool.take("app", "session")
    begun = asyncio.Event()
    lost = 0

    async def work() -> Answer:
        nonlocal lost
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost += 1
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(work())
    await begun.wait()
    async with asyncio.timeout(10):
        await break_off(pool, seat, task)
    assert (lost, task.cancelled()) == (1, True)


async def test_a_turn_that_is_cancelled_before_its_app_may_go_on_never_reaches_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd of turns that are cancelled at once had the loop at every step, whatever its app had had."""
    waits, may_go_on, prompts = asyncio.Event(), asyncio.Event(), list[str]()
    may_go_on.set()
    go_on, prompt, cancel = LoopTurns.go_on, AcpAgent.prompt, AcpAgent.cancel

    async def go_on_when_it_may(turns: LoopTurns, app: str) -> None:
        if not may_go_on.is_set():
            waits.set()
        await may_go_on.wait()
        await go_on(turns, app)

    async def note_prompt(agent: AcpAgent, text: str, *given: Any, **more: Any) -> Answer:
        prompts.append(text)
        return await prompt(agent, text, *given, **more)

    async def cancel_and_go_on(agent: AcpAgent) -> None:
        await cancel(agent)
        may_go_on.set()

    monkeypatch.setattr(LoopTurns, "go_on", go_on_when_it_may)
    monkeypatch.setattr(AcpAgent, "prompt", note_prompt)
    monkeypatch.setattr(AcpAgent, "cancel", cancel_and_go_on)
    async with asyncio.timeout(30), open_parts(make_settings(tmp_path)) as parts:
        session_id = (await parts.services.sessions.create(APP, CreateSession())).row.session_id
        await parts.supervisor.wait_for_copy(session_id, await say(parts, session_id, "echo 1"))
        may_go_on.clear()
        turn_index = await submit(parts, session_id, "hang")
        await waits.wait()
        await parts.services.turns.cancel(APP, session_id)
        turn = await parts.services.turns.wait(APP, session_id, turn_index)
        assert turn.outcome is Outcome.CANCELLED
        assert prompts == ["echo 1"]
        await say(parts, session_id, "echo 2")
        await parts.supervisor.stop(0)
