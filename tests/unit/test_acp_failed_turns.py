"""An agent that tells of a failure beside its answer, which it gives as if all were well."""

import json
from pathlib import Path

import pytest

from clawdforge.drivers.processes.containment import find_containment
from clawdforge.wire.errors import AgentFailed, ContextTooLong, ModelRateLimited
from clawdforge.wire.event import EventType
from tests.unit.acp_bench import Bench, Notebook, say

QUIRKS = {"failed_meta": ["codex", "threadStatus", "type", "systemError"]}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, find_containment("off"))


def told(status: str) -> str:
    meta = {"codex": {"threadStatus": {"type": status}}}
    return "update " + json.dumps({"sessionUpdate": "session_info_update", "_meta": meta})


@pytest.mark.parametrize(
    ("words", "kind", "lives"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", ModelRateLimited, True),
        ('{"error": {"code": "context_length_exceeded"}}', ContextTooLong, True),
        ("thread 'main' panicked", AgentFailed, False),
    ],
)
async def test_its_turn_fails_for_the_reason_that_it_gave_as_an_answer(
    bench: Bench, words: str, kind: type[AgentFailed], lives: bool
) -> None:
    async with bench.scripted(quirks=QUIRKS) as agent:
        assert (await say(agent, f"{told('active')}\necho API Error: 529 is what we talk of")).text()
        sink = Notebook()
        with pytest.raises(kind) as caught:
            await agent.prompt(f"echo Warning: 401\n{told('systemError')}\necho {words}", sink)
        assert words in caught.value.message
        assert "Warning" not in caught.value.message
        assert sink.types() == [EventType.TEXT, EventType.INFO, EventType.TEXT, EventType.RESPONSE]
        assert agent.alive == lives


async def test_without_a_word_of_it_in_its_entry_an_answer_is_an_answer(bench: Bench) -> None:
    async with bench.scripted() as agent:
        assert (await say(agent, f"{told('systemError')}\necho status: 429")).text() == "status: 429"


async def test_a_turn_that_was_cancelled_is_not_a_failed_one(bench: Bench) -> None:
    async with bench.scripted(quirks=QUIRKS) as agent:
        answer = await agent.prompt(f"{told('systemError')}\necho cut\nstop cancelled", Notebook())
        assert answer.stop_reason == "cancelled"
