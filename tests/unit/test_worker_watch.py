"""An adapter that has lost the program behind it, and says nothing, does not keep a turn waiting."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.drivers.acp.driver import AcpAgent
from clawdforge.drivers.processes.containment import find_containment
from clawdforge.drivers.processes.launcher import children
from clawdforge.wire.errors import AgentFailed, AgentLost
from tests.unit.acp_bench import Bench, Notebook, first_allow, until

SOON = {"orphaned_secs": 0.4}
LONGER = 1.2  # than that


@pytest.fixture(params=["off", "auto"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, find_containment(request.param))


@asynccontextmanager
async def adapter(bench: Bench, *, has_child: bool = True) -> AsyncIterator[AcpAgent]:
    async with bench.scripted(limits=SOON, quirks={"adapter": True}) as agent:
        if has_child:
            await agent.prompt("children 1\nsleep 0.5", Notebook())
        yield agent


def kill_worker(agent: AcpAgent) -> None:
    (own, *_) = children(agent._process._root)
    (worker,) = children(own)
    os.kill(worker, signal.SIGKILL)


async def test_a_prompt_that_nobody_began_is_lost_and_can_be_given_to_another(bench: Bench) -> None:
    async with adapter(bench) as agent:
        kill_worker(agent)
        with pytest.raises(AgentLost, match="the program behind it has ended") as failed:
            await agent.prompt("hang", Notebook())
        assert failed.value.extra["heard"] is False
        assert not agent.alive


async def test_a_prompt_that_was_begun_fails(bench: Bench) -> None:
    async with adapter(bench) as agent:
        sink = Notebook()
        prompt = asyncio.create_task(agent.prompt("echo half\nhang", sink))
        await until(lambda: sink.text() == "half")
        kill_worker(agent)
        with pytest.raises(AgentFailed, match="the program behind it has ended") as failed:
            await prompt
        assert not isinstance(failed.value, AgentLost)
        assert "heard" not in failed.value.extra


async def test_an_adapter_whose_child_lives_may_be_silent(bench: Bench) -> None:
    async with adapter(bench) as agent:
        assert (await agent.prompt(f"sleep {LONGER}", Notebook())).stop_reason == "end_turn"


async def test_one_that_never_had_a_child_is_left_alone(bench: Bench) -> None:
    async with adapter(bench, has_child=False) as agent:
        assert (await agent.prompt(f"sleep {LONGER}", Notebook())).stop_reason == "end_turn"


async def test_one_that_waits_for_our_answer_is_not_silent(bench: Bench) -> None:
    async def decide(request: Ask) -> Verdict:
        kill_worker(agent)
        await asyncio.sleep(LONGER)  # a person takes longer than an adapter may
        return first_allow(request)

    async with adapter(bench) as agent:
        sink = Notebook(deciding=decide)
        assert (await agent.prompt("ask Remove all", sink)).stop_reason == "end_turn"
        assert "permission: allow_once" in sink.text()
