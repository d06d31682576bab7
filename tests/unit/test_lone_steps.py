"""What a step of an app costs the event loop where nobody else is about."""

import asyncio

import pytest

from clawdforge.core.pacing.loop_turns import LoopTurns


async def test_a_lone_step_takes_one_pass_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 0.0)  # else a pass may be a long one
    passes: list[LoopTurns] = []
    real = LoopTurns._pass

    def count(turns: LoopTurns) -> None:
        passes.append(turns)
        real(turns)

    monkeypatch.setattr(LoopTurns, "_pass", count)
    turns = LoopTurns()
    for number in range(1, 4):
        await turns.enter("lone")
        for _ in range(4):
            await asyncio.sleep(0)
        assert len(passes) == number
