"""The ACP driver against the scripted agent: prompts, sessions that come back, agents that misbehave."""

import asyncio
from pathlib import Path

import orjson
import psutil
import pytest

from clawdforge import scripted
from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.drivers.acp.prompt import TOO_MUCH
from clawdforge.drivers.processes.containment import Containment, probe
from clawdforge.wire.errors import (
    AgentAuthRequired,
    AgentFailed,
    AgentNotInstalled,
    AgentStartFailed,
    ModelOverloaded,
)
from clawdforge.wire.event import EventType
from tests.support.processes import state
from tests.unit.acp_bench import Bench, Notebook, say, until


@pytest.fixture(scope="module")
def containment() -> Containment:
    return probe("auto")


@pytest.fixture
def bench(tmp_path: Path, containment: Containment) -> Bench:
    return Bench(tmp_path, containment)


async def test_a_prompt_gives_its_chunks_and_its_answer_and_nothing_else(bench: Bench) -> None:
    """S0-32, S0-34, X-02: what the agent said when it was opened is no part of it."""
    async with bench.scripted() as agent:
        sink = Notebook()
        answer = await agent.prompt("hello", sink)
        assert sink.types() == [EventType.TEXT, EventType.RESPONSE]
        assert sink.text() == "hello"
        assert sink.sizes == [len(orjson.dumps(message)) for message in sink.messages()]
        assert answer.stop_reason == sink.messages()[-1]["result"]["stopReason"] == "end_turn"
        assert (agent.how, agent.remembered, agent.note, agent.alive) == ("new", [], None, True)
    assert bench.outside.types() == [EventType.COMMANDS]
    assert not agent.alive
    assert bench.processes() == []


async def test_ten_thousand_chunks_come_in_order(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = await say(agent, "chunks 10000")
    assert sink.text().split() == [str(n) for n in range(1, 10_001)]
    assert sink.types()[-1] is EventType.RESPONSE


async def test_a_slow_sink_slows_the_agent_down_and_loses_nothing(bench: Bench) -> None:
    gate = asyncio.Event()
    async with bench.scripted() as agent:
        sink = Notebook(pace=lambda: _pass(gate))
        prompting = asyncio.create_task(agent.prompt("chunks 2000 20000", sink))
        buffered = agent._process.stdout._buffer  # type: ignore[attr-defined] # what a reader holds back

        def waits() -> bool:
            """It stands still because it waits, not because others have the processor."""
            return "R" not in map(state, bench.processes())

        await until(lambda: len(buffered) > 300_000 and waits())
        assert len(buffered) < 2_000_000, "40 MB wait in the agent, not in the server"
        gate.set()
        await prompting
    assert len(sink.texts()) == 2000


async def _pass(gate: asyncio.Event) -> None:
    await gate.wait()


async def test_kinds_that_nobody_knows_pass_as_they_came(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = await say(agent, 'other sparkle\nupdate {"sessionUpdate":"x","deep":{"a":[1,null]}}')
    updates = [message["params"]["update"] for message in sink.messages()[:-1]]
    assert updates[0]["sessionUpdate"] == "sparkle"
    assert updates[1] == {"sessionUpdate": "x", "deep": {"a": [1, None]}}


async def test_what_is_not_unicode_or_not_json_never_breaks_a_turn(bench: Bench) -> None:
    """S0-110."""
    async with bench.scripted() as agent:
        sink = await say(
            agent, "garbage 100\nbad-utf8\nsurrogate\nunicode\nraw {\nraw []\nwrong-id\necho end"
        )
        assert sink.text().endswith("end")
        assert all(orjson.dumps(event.fields) for event in sink.events)
        assert (await say(agent, "again")).text() == "again"


async def test_a_second_answer_to_a_prompt_is_ignored(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = await say(agent, "dup-response\necho one")
        assert sink.types() == [EventType.TEXT, EventType.RESPONSE]
        assert (await say(agent, "two")).types() == [EventType.TEXT, EventType.RESPONSE]


async def test_updates_after_the_answer_are_never_part_of_a_turn(bench: Bench) -> None:
    """S0-111, X-02."""
    async with bench.scripted("--late-updates") as agent:
        for n in range(20):
            sink = Notebook()
            answer = await agent.prompt(f"echo turn {n}\nstop max_tokens", sink)
            assert answer.stop_reason == "max_tokens"
            assert sink.types() == [EventType.TEXT, EventType.RESPONSE]
            await until(lambda: bench.outside.texts().count("late") > n)  # noqa: B023 - awaited at once


async def test_an_error_answer_fails_the_turn_in_the_agents_words_and_is_kept(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = Notebook()
        with pytest.raises(AgentFailed, match="the model is on holiday") as caught:
            await agent.prompt("echo half\nstderr 5000\nerror the model is on holiday", sink)
        assert len(caught.value.extra["stderr"]) >= 5000
        assert sink.types() == [EventType.TEXT, EventType.RESPONSE]
        assert not agent.alive, "whatever failed in it, it is not given another prompt"


async def test_an_agent_stays_when_it_was_the_provider_that_failed(bench: Bench) -> None:
    async with bench.scripted() as agent:
        with pytest.raises(ModelOverloaded) as caught:
            await agent.prompt("error API Error: 529 Overloaded; retry after 7", Notebook())
        assert (caught.value.retry_after, caught.value.extra["heard"]) == (7.0, False)
        assert agent.alive
        assert (await say(agent, "on we go")).text() == "on we go"


@pytest.mark.parametrize(("trouble", "code"), [("crash 7", 7), ("kill-self", 137)])
async def test_an_agent_that_dies_in_a_prompt_keeps_what_it_said(
    bench: Bench, trouble: str, code: int
) -> None:
    async with bench.scripted() as agent:
        sink = Notebook()
        with pytest.raises(AgentFailed, match=f"exited with code {code}"):
            await agent.prompt(f"chunks 3\nstderr 100\n{trouble}", sink)
        assert len(sink.texts()) == 3
        assert not agent.alive
    assert bench.processes() == []


async def test_an_agent_that_closes_its_output_fails_its_prompt(tmp_path: Path) -> None:
    # In a namespace its first process holds the pipe as well: then only the turn's time limit helps.
    bench = Bench(tmp_path, probe("auto", bwrap="no-such-bwrap"))
    async with bench.scripted() as agent:
        with pytest.raises(AgentFailed, match="closed its output"):
            await agent.prompt("close-stdout\nhang", Notebook())
        assert not agent.alive
    assert bench.processes() == []


async def test_a_cancel_is_an_answer_and_keeps_what_was_said(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = Notebook()
        prompting = asyncio.create_task(agent.prompt("echo begun\nhang", sink))
        await until(lambda: sink.text() == "begun")
        await agent.cancel()
        assert (await prompting).stop_reason == "cancelled"
        assert (await say(agent, "next")).text() == "next"


async def test_a_cancel_right_at_the_start_of_a_prompt_is_not_lost(bench: Bench) -> None:
    async with bench.scripted() as agent:
        for _ in range(10):
            prompting = asyncio.create_task(agent.prompt("hang", Notebook()))
            await asyncio.sleep(0)
            await agent.cancel()
            assert (await prompting).stop_reason == "cancelled"
        await agent.cancel()
        assert (await say(agent, "idle cancels do nothing")).text() == "idle cancels do nothing"


async def test_an_agent_may_answer_a_cancel_with_end_turn(bench: Bench) -> None:
    async with bench.scripted("--end-turn-on-cancel") as agent:
        prompting = asyncio.create_task(agent.prompt("hang", Notebook()))
        await asyncio.sleep(0)
        await agent.cancel()
        assert (await prompting).stop_reason == "end_turn"


async def test_a_prompt_that_is_given_up_leaves_an_agent_that_is_not_used_again(bench: Bench) -> None:
    async with bench.scripted("--ignore-cancel") as agent:
        sink = Notebook()
        prompting = asyncio.create_task(agent.prompt("hang-hard", sink))
        await until(lambda: sink.text() == "deaf")
        await agent.cancel()
        prompting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await prompting
        assert not agent.alive
    assert bench.processes() == []


async def test_a_permission_is_decided_while_the_agent_waits(bench: Bench) -> None:
    """X-02: the request itself is no event of the turn."""
    async with bench.scripted() as agent:
        sink = await say(agent, "ask Delete everything delete")
        assert sink.text() == "permission: allow_once"
        (asked,) = sink.asks
        assert (asked.tool, asked.kind) == ("Delete everything", "delete")
        assert {o["kind"] for o in asked.options} >= {"allow_once", "reject_once"}
        assert asked.request["toolCall"]["title"] == "Delete everything"
        assert sink.types() == [
            EventType.TOOL_CALL,
            EventType.TOOL_UPDATE,
            EventType.TEXT,
            EventType.RESPONSE,
        ]
        sink = await say(agent, "ask Read it read", deciding=_nobody)
        assert sink.text() == "permission: cancelled"


async def _nobody(_request: Ask) -> Verdict:
    return Verdict(option_id=None)


async def test_a_cancel_answers_what_was_asked_with_cancelled(bench: Bench) -> None:
    given_up = asyncio.Event()

    async def never(_request: Ask) -> Verdict:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        raise AssertionError

    async with bench.scripted("--ignore-cancel") as agent:
        sink = Notebook(deciding=never)
        prompting = asyncio.create_task(agent.prompt("ask Wait", sink))
        await until(lambda: bool(sink.asks))
        await agent.cancel()
        await prompting
        assert given_up.is_set()
        assert sink.text() == "permission: cancelled"


async def test_a_failing_sink_fails_the_prompt_with_its_own_error(bench: Bench) -> None:
    async def fail() -> None:
        raise LookupError("no room")

    async with bench.scripted() as agent:
        with pytest.raises(LookupError, match="no room"):
            await agent.prompt("hello", Notebook(pace=fail))
        assert not agent.alive


async def test_output_beyond_the_limit_is_dropped_and_marked_but_the_answer_is_kept(bench: Bench) -> None:
    async with bench.scripted(limits={"max_turn_bytes": 10_000}) as agent:
        sink = await say(agent, "chunks 100 1000")
        assert sink.types()[-1] is EventType.RESPONSE
        assert 1 <= len(sink.texts()) < 10
        assert sum(sink.sizes[:-1]) <= 10_000
        assert [reason for _, reason in sink.cuts] == [TOO_MUCH, TOO_MUCH]
        whole = sum(sink.sizes[:-1]) + sum(dropped for dropped, _ in sink.cuts)
        assert whole > 100_000
        assert (await say(agent, "fresh")).cuts == []


async def test_a_line_beyond_the_limit_is_marked_and_the_turn_goes_on(bench: Bench) -> None:
    async with bench.scripted(limits={"max_line_bytes": 100_000}) as agent:
        sink = await say(agent, "echo a\nbytes 5000000\necho b")
    assert sink.texts() == ["a", "b"]
    ((dropped, reason),) = sink.cuts
    assert dropped > 5_000_000
    assert "100000 bytes" in reason


async def test_a_loaded_session_remembers_and_its_replay_is_evidence_not_output(bench: Bench) -> None:
    """X-02."""
    async with bench.scripted() as agent:
        await say(agent, "first")
        await say(agent, "second line\nand more")
        name = agent.agent_session_id
    bench.outside.events.clear()
    async with bench.scripted(agent_session_id=name) as agent:
        assert (agent.how, agent.agent_session_id) == ("loaded", name)
        assert agent.remembered == ["first", "second line\nand more"]
        assert (await say(agent, "count")).text() == "turn=3"
    assert EventType.TEXT not in bench.outside.types()
    assert EventType.USER not in bench.outside.types()


@pytest.mark.parametrize("flags", [(), ("--replay-on-resume",)])
async def test_without_load_a_session_is_resumed_and_a_replay_is_swallowed(
    bench: Bench, flags: tuple[str, ...]
) -> None:
    async with bench.scripted("--no-load") as agent:
        await say(agent, "first")
        name = agent.agent_session_id
    async with bench.scripted("--no-load", *flags, agent_session_id=name) as agent:
        assert (agent.how, agent.remembered) == ("resumed", None)
        assert (await say(agent, "count")).text() == "turn=2"
    assert EventType.TEXT not in bench.outside.types()


async def test_a_quirk_keeps_a_harmful_load_from_being_used(bench: Bench) -> None:
    async with bench.scripted() as agent:
        name = agent.agent_session_id
    async with bench.scripted(agent_session_id=name, quirks={"load": False}) as agent:
        assert agent.how == "resumed"


async def test_a_session_that_is_not_found_becomes_a_new_one_and_says_why(bench: Bench) -> None:
    async with bench.scripted(agent_session_id="gone") as agent:
        assert agent.how == "new"
        assert agent.agent_session_id != "gone"
        assert agent.note == "session/load failed: Session not found: gone"
        assert (await say(agent, "count")).text() == "turn=1"
    async with bench.scripted("--no-load", "--no-resume", agent_session_id="gone") as agent:
        assert agent.how == "new"
        assert "neither load nor resume" in str(agent.note)


async def test_model_and_plan_mode_are_set_by_the_agents_own_means(bench: Bench) -> None:
    async with bench.scripted(model="Scripted 2", plan_mode=True) as agent:
        name = agent.agent_session_id
        assert agent.note is None
    head = next(bench.home.rglob(f"*{name}*.json"), None) or next(bench.home.rglob("*.json"))
    kept = orjson.loads(head.read_bytes())
    assert (kept["model"], kept["mode"]) == ("scripted-2", "plan")


async def test_an_agent_that_wants_a_login_says_which(bench: Bench) -> None:
    with pytest.raises(AgentAuthRequired, match=r"Authentication required.*Log in"):
        await bench.open(bench.launch(*scripted.command("--auth-required")))
    with pytest.raises(AgentAuthRequired):
        await bench.open(bench.launch(*scripted.command("--auth-required"), agent_session_id="x"))
    assert bench.processes() == []


async def test_an_agent_that_exits_at_start_is_heard(bench: Bench) -> None:
    with pytest.raises(AgentStartFailed, match="exited with code 3; it said: ") as caught:
        await bench.open(bench.launch(*scripted.command("--exit-at-start")))
    assert caught.value.extra["stderr"]
    assert bench.processes() == []


async def test_a_program_that_is_no_agent_is_heard(bench: Bench) -> None:
    with pytest.raises(AgentStartFailed, match="exited with code 0; it said: usage: this is no agent"):
        await bench.open(bench.launch("/bin/sh", "-c", "echo usage: this is no agent"))


async def test_an_agent_that_hangs_at_start_is_ended(bench: Bench) -> None:
    with pytest.raises(AgentStartFailed, match=r"did not answer initialize within 0\.2 s"):
        await bench.open(bench.launch(*scripted.command("--hang-at-start")), start_timeout=0.2)
    assert bench.processes() == []


async def test_garbage_before_the_first_answer_does_no_harm(bench: Bench) -> None:
    async with bench.scripted("--garbage-at-start") as agent:
        assert (await say(agent, "hello")).text() == "hello"


async def test_a_program_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(AgentNotInstalled, match="no-such-agent"):
        await bench.open(bench.launch("no-such-agent"))


async def test_closing_ends_everything_and_may_be_done_twice(bench: Bench) -> None:
    async with bench.scripted("--ignore-term") as agent:
        await say(agent, "children 2\ndaemon")
        assert bench.processes()
        await asyncio.gather(agent.close(), agent.close())
        assert bench.processes() == []
        with pytest.raises(AgentFailed):
            await agent.prompt("too late", Notebook())


async def test_a_paused_agent_says_nothing(bench: Bench) -> None:
    async with bench.scripted() as agent:
        sink = Notebook()
        prompting = asyncio.create_task(agent.prompt("chunks 300 10 5", sink))
        await until(lambda: len(sink.texts()) > 2)
        with agent.pause():
            assert len(sink.texts()) < 300
            agents = [pid for pid in bench.processes() if not psutil.Process(pid).children()]
            assert {state(pid) for pid in agents} == {"T"}
        await prompting
        assert len(sink.texts()) == 300
