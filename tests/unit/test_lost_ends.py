"""A turn whose end could not be written is ended all the same, by whoever comes next."""

import asyncio
from pathlib import Path

import pytest

from clawdforge.core.running import supervisor as supervisors
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.parts import open_parts
from clawdforge.wire.session import CreateSession
from clawdforge.wire.turn import Outcome
from tests.unit.supervised import APP, make_settings, submit, wait_for_text

LONG = 60.0


async def test_a_turn_whose_end_was_lost_is_ended_although_every_place_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = asyncio.Event()

    async def fail(*_: object, **__: object) -> None:
        raise OverflowError("a number of the agent's")

    async def fail_again(*_: object, **__: object) -> None:
        failed.set()
        raise OverflowError("the same number")

    monkeypatch.setattr(supervisors, "WORKER_RETRY_SECS", 1.0)
    settings = make_settings(tmp_path, max_live_agents=1)
    async with asyncio.timeout(LONG), open_parts(settings) as parts:
        lost, other = [
            (await parts.services.sessions.create(APP, CreateSession())).row.session_id for _ in range(2)
        ]
        with monkeypatch.context() as broken:
            broken.setattr(TurnRecorder, "end", fail)
            broken.setattr(TurnRecorder, "end_without_answer", fail_again)
            turn_index = await submit(parts, lost, "echo one")
            await failed.wait()
        await submit(parts, other, "echo at work\nhang")
        await wait_for_text(parts, other)
        turn = await parts.services.turns.wait(APP, lost, turn_index)
        assert turn.outcome is Outcome.INTERRUPTED
        await parts.supervisor.stop(0)
