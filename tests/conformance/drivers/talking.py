"""What is said in a turn: in order, whole, only what belongs to it, and with what the agent may see."""

import asyncio
import json

import pytest

from clawdforge.core.ports import Capability
from clawdforge.wire.errors import AgentFailed
from clawdforge.wire.event import EventType
from tests.conformance.drivers.bench import DriverBench, Notebook, say


async def test_chunks_come_in_order_and_the_answer_comes_last(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = await say(live, "chunks 200")
    assert sink.text().split() == [str(n) for n in range(1, 201)]
    assert sink.types() == [EventType.TEXT] * 200 + [EventType.RESPONSE]


async def test_one_chunk_and_its_answer_are_two_messages_in_every_turn(bench: DriverBench) -> None:
    async with bench.opened() as live:
        for word in ("first", "second"):
            sink = await say(live, f"echo {word}")
            assert sink.types() == [EventType.TEXT, EventType.RESPONSE]
            assert sink.texts() == [word]
            assert not sink.cuts


async def test_the_answer_says_why_the_turn_stopped(bench: DriverBench) -> None:
    async with bench.opened() as live:
        for prompt, reason in (("echo x", "end_turn"), ("refuse", "refusal"), ("max-tokens", "max_tokens")):
            sink = Notebook()
            answer = await live.prompt(prompt, sink)
            assert answer.stop_reason == reason
            assert sink.events[-1].fields["result"]["stopReason"] == reason


async def test_a_tool_call_is_told_before_it_is_over(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = await say(live, "tool look 10\necho done")
    kinds = [kind for kind in sink.types() if kind is not EventType.TOOL_UPDATE]
    assert kinds == [EventType.TOOL_CALL, EventType.TEXT, EventType.RESPONSE]
    assert EventType.TOOL_UPDATE in sink.types()


@pytest.mark.parametrize(
    "text",
    ["  spaces  kept \n\n and lines ", '[{"type": "text", "text": "echo taken apart"}]', "ü\u202ex\u2028☃"],
)
async def test_a_prompt_is_handed_over_as_it_was_written(bench: DriverBench, text: str) -> None:
    async with bench.opened() as live:
        assert (await say(live, text)).text() == text


async def test_a_preface_is_heard_and_is_not_the_prompt(bench: DriverBench) -> None:
    async with bench.opened() as live:
        sink = Notebook()
        await live.prompt("echo prompt", sink, preface="echo preface")
        assert sink.texts() == ["prompt"]
        heard = await say(live, "recall all")
        assert "echo preface" in heard.text()


async def test_the_agents_own_words_come_with_its_failure(bench: DriverBench) -> None:
    async with bench.opened() as live:
        with pytest.raises(AgentFailed, match="out of cheese"):
            await live.prompt("error out of cheese", Notebook())
        if live.alive:
            assert (await say(live, "echo again")).text() == "again"


async def test_it_works_in_its_workspace_with_its_own_home(bench: DriverBench) -> None:
    async with bench.opened() as live:
        assert (await say(live, "cwd")).text() == str(bench.place.workspace)
        assert (await say(live, "home")).text() == str(bench.place.home)


async def test_its_environment_is_an_allow_list(bench: DriverBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWDFORGE_ADMIN_TOKEN", "canary")
    monkeypatch.setenv("SOME_SECRET", "canary")
    async with bench.opened() as live:
        names = json.loads((await say(live, "env")).text())
    assert "HOME" in names
    assert [name for name in names if name.startswith("CLAWDFORGE_")] == ["CLAWDFORGE_TAG"]
    assert "SOME_SECRET" not in names


async def test_two_sessions_speak_at_once_and_apart(bench: DriverBench) -> None:
    other = bench.new_place()
    async with bench.opened() as one, bench.opened(other) as two:
        assert one.agent_session_id
        sinks = await asyncio.gather(
            say(one, "chunks 40 30\necho ONE"), say(two, "chunks 40 30\necho TWO\nrecall")
        )
        assert sinks[0].text().endswith("ONE")
        assert sinks[1].text().endswith("TWO[]")
        assert (await say(two, "recall")).text().count("chunks") == 1


async def test_what_a_turn_cost_is_told(bench: DriverBench) -> None:
    async with bench.opened() as live:
        answer = await live.prompt("usage 120 30 10\necho x", Notebook())
    if Capability.USAGE not in bench.capabilities:
        assert answer.usage is None
        return
    assert answer.usage is not None
    assert (answer.usage["input_tokens"], answer.usage["output_tokens"]) == (120, 30)
    assert answer.usage["cached_tokens"] == 10
