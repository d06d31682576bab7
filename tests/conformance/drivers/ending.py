"""How turns and agents end: cancelled, crashed, flooding, closed; and that nothing of them is left."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.ports import Capability
from clawdforge.wire.errors import AgentError, AgentFailed, AgentNotInstalled, AgentStartFailed
from clawdforge.wire.event import EventType
from tests.conformance.drivers.bench import DriverBench, Notebook, say, until

MEBI = 1024 * 1024


async def test_a_cancel_in_the_middle_of_a_tool_ends_the_turn(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = Notebook()
        running = asyncio.create_task(live.prompt("echo before\ntool slow 60000\necho after", sink))
        await until(lambda: EventType.TOOL_CALL in sink.types())
        await live.cancel()
        answer = await asyncio.wait_for(running, 15)
        assert answer.stop_reason == "cancelled"
        assert sink.text() == "before"
        assert (await say(live, "echo next")).text() == "next"


async def test_a_cancel_without_a_prompt_does_no_harm(bench: DriverBench) -> None:
    async with bench.opened() as live:
        await live.cancel()
        assert (await say(live, "echo fine")).text() == "fine"


async def test_a_second_prompt_at_the_same_time_is_refused(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = Notebook()
        running = asyncio.create_task(live.prompt("echo a\nsleep 60", sink))
        await until(lambda: bool(sink.events))
        with pytest.raises(AgentFailed, match="busy"):
            await live.prompt("echo b", Notebook())
        await live.cancel()
        await running


async def test_closing_in_the_middle_of_a_prompt_leaves_no_process(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = Notebook()
        running = asyncio.create_task(live.prompt("children 2\ndaemon\nhang", sink))
        await until(lambda: len(sink.events) >= 2)
        await asyncio.wait_for(live.close(), 15)
        assert not live.alive
        with pytest.raises(AgentError):
            await running
        assert bench.place.processes() == []


async def test_what_an_agent_left_running_ends_when_it_goes_to_sleep(bench: DriverBench) -> None:
    async with bench.opened() as live:
        await say(live, "daemon")
        await asyncio.wait_for(live.close(), 60)
        assert bench.place.processes() == []


async def test_an_agent_that_crashes_is_a_failed_turn_and_leaves_nothing(bench: DriverBench) -> None:
    async with bench.opened() as live:
        with pytest.raises(AgentFailed):
            await live.prompt("children 1\necho half\ncrash 3", Notebook())
        assert not live.alive
        await live.close()
        assert bench.place.processes() == []


async def test_killing_the_whole_tree_is_a_failed_turn(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = Notebook()
        running = asyncio.create_task(live.prompt("echo half\nhang", sink))
        await until(lambda: bool(sink.events))
        for pid in bench.place.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(AgentFailed):
            await asyncio.wait_for(running, 15)
        assert sink.text() == "half"
        assert not live.alive
        await live.close()
        assert bench.place.processes() == []


async def test_an_agent_that_cannot_start_says_why_and_leaves_nothing(bench: DriverBench) -> None:
    with pytest.raises(AgentStartFailed) as failed:
        await bench.driver.open(bench.launch(agent=bench.broken), Notebook())
    assert failed.value.message
    assert bench.place.processes() == []


async def test_a_program_that_is_not_there_is_said_to_be_missing(bench: DriverBench) -> None:
    spec = AgentSpec(name="gone", driver=bench.agent.driver, command=("clawdforge-no-such-agent",))
    with pytest.raises(AgentNotInstalled, match="clawdforge-no-such-agent is not installed"):
        await bench.driver.open(bench.launch(agent=spec), Notebook())


async def test_a_flood_on_stderr_stops_nothing(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = await asyncio.wait_for(say(live, f"stderr {4 * MEBI}\necho on"), 60)
        assert sink.text() == "on"


async def test_a_line_of_ten_megabytes_arrives_whole(bench: DriverBench) -> None:
    async with bench.opened() as live:
        if Capability.LONG_LINES not in bench.capabilities:
            with pytest.raises(AgentFailed, match="exceeded"):
                await asyncio.wait_for(say(live, f"bytes {10 * MEBI}"), 60)
            return
        sink = await asyncio.wait_for(say(live, f"bytes {10 * MEBI}"), 60)
    assert sum(len(text) for text in sink.texts()) == 10 * MEBI
    assert not sink.cuts


async def test_lines_that_are_not_json_are_passed_over(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = await say(live, "garbage 5\necho still here")
        assert sink.texts() == ["still here"]
        assert sink.types() == [EventType.TEXT, EventType.RESPONSE]


async def test_nothing_of_it_runs_while_it_is_paused(bench: DriverBench) -> None:
    beat = bench.place.workspace / "beat"
    async with bench.opened() as live:
        await say(live, f"daemon {beat}")
        await until(lambda: _size(beat) > 0)
        with live.pause():
            before = _size(beat)
            time.sleep(0.3)  # noqa: ASYNC251 - six of its beats, and nobody of ours may run either
            assert _size(beat) == before
        await until(lambda: _size(beat) > before)


async def test_closing_twice_is_as_good_as_once(bench: DriverBench) -> None:
    async with bench.opened() as live:
        await asyncio.gather(live.close(), live.close())
        assert not live.alive


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
