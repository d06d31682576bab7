"""What the session decides: permissions, files and commands through us, the plan mode."""

import asyncio
from typing import Any

from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.core.ports import Capability
from tests.conformance.drivers.bench import DriverBench, Notebook, say


async def _reject(request: Ask) -> Verdict:
    rejecting = (str(o["optionId"]) for o in request.options if str(o.get("kind")).startswith("reject"))
    return Verdict(option_id=next(rejecting, None))


async def test_what_an_agent_asks_for_is_decided_by_the_session(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = await say(live, "ask remove the moon")
        assert "permission: allow" in sink.text()
        assert len(sink.asks) == 1
        each = Capability.PERMISSIONS in bench.capabilities
        assert ("remove the moon" in str(sink.asks[0].request)) is each
        refused = await say(live, "ask remove the sun", deciding=_reject)
        assert "permission: allow" not in refused.text()


async def test_each_request_is_asked_where_that_is_declared_else_one_for_the_turn(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = await say(live, "ask one\nask two\nask three")
    assert len(sink.asks) == (3 if Capability.PERMISSIONS in bench.capabilities else 1)
    assert sink.text().count("permission: allow") == 3


async def test_a_cancel_ends_the_wait_for_a_decision(bench: DriverBench) -> None:
    asked = asyncio.Event()

    async def never(_request: Ask) -> Verdict:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with bench.opened() as live:
        running = asyncio.create_task(live.prompt("ask for ever", Notebook(deciding=never)))
        await asyncio.wait_for(asked.wait(), 60)
        await live.cancel()
        answer = await asyncio.wait_for(running, 60)
        if Capability.PERMISSIONS in bench.capabilities:
            assert answer.stop_reason == "cancelled"
        assert (await say(live, "echo next")).text() == "next"


async def test_files_are_read_and_written_through_us_where_that_is_declared(bench: DriverBench) -> None:
    (bench.place.workspace / "in.txt").write_text("content")
    async with bench.opened() as live:
        sink = await say(live, "fs-read in.txt\nfs-write out.txt new")
    if Capability.CLIENT_FILES not in bench.capabilities:
        assert not any(ask.tool.startswith("fs/") for ask in sink.asks)
        return
    assert sink.text().startswith("content")
    assert (bench.place.workspace / "out.txt").read_text() == "new"
    assert [ask.tool for ask in sink.asks] == ["fs/read_text_file", "fs/write_text_file"]


async def test_commands_run_in_our_terminals_where_that_is_declared(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = await say(live, "terminal echo from a terminal")
    if Capability.CLIENT_TERMINALS not in bench.capabilities:
        assert not any(ask.tool.startswith("terminal/") for ask in sink.asks)
        return
    assert "from a terminal" in sink.text()


async def test_the_plan_mode_is_set_or_said_to_be_missing(bench: DriverBench) -> None:
    async with bench.opened(plan_mode=True) as live:
        told: Any = live  # the note is for the server's log, so the port does not know it
        assert (told.note is None) is (Capability.PLAN_MODE in bench.capabilities)
        assert (await say(live, "echo goes on")).text() == "goes on"


async def test_an_agent_without_plan_mode_starts_all_the_same(bench: DriverBench) -> None:
    async with bench.opened(plan_mode=True) as live:
        assert (await say(live, "echo there")).text() == "there"
