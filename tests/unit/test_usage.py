"""What a turn used: the agent's numbers in one shape, whatever they mean, and never counted twice."""

from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.core.models.agents import Used
from clawdforge.drivers.acp.prices import Price, Prices, Tokens
from clawdforge.drivers.acp.usage import UsageMeter
from clawdforge.drivers.processes.containment import probe
from clawdforge.wire.base import Json
from clawdforge.wire.quirks import Quirks
from clawdforge.wire.turn import Usage
from tests.unit.acp_bench import Bench, Notebook

PRICES = Prices({"big": Price(10.0, 100.0, 1.0), "big-mini": Price(1.0, 10.0, 0.1)})


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, probe("off"))


def cost(amount: object, currency: str = "USD") -> Json:
    return {"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": currency}}


def tokens(taken: int, given: int, cached: int = 0, **more: int) -> Json:
    counts = {"inputTokens": taken, "outputTokens": given, "cachedReadTokens": cached}
    return {"usage": {**counts, "totalTokens": taken + given + cached + sum(more.values()), **more}}


def measured(meter: UsageMeter, result: Json, model: str | None = None) -> Usage:
    found = meter.usage_of(result, model)
    assert found is not None
    return Usage.model_validate(found)


def test_a_running_cost_is_split_into_turns() -> None:
    meter = UsageMeter()
    meter.start_prompt()
    meter.observe(cost(0.5))
    first = measured(meter, {})
    assert (first.cost_usd, first.total_tokens, first.estimated) == (0.5, 0, True), "0 is not what it used"
    meter.start_prompt()
    meter.observe(cost(0.5))
    meter.observe(cost(0.75))
    assert measured(meter, {}).cost_usd == 0.25
    meter.start_prompt()
    assert meter.usage_of({}) is None
    meter.start_prompt()
    meter.observe(cost(0.1))  # it was started again and counts from zero
    assert measured(meter, {}).cost_usd == 0.1


def test_a_turn_that_was_cancelled_never_has_exact_numbers() -> None:
    """Some report nothing for it and some a part."""
    meter = UsageMeter()
    meter.start_prompt()
    assert meter.usage_of(tokens(0, 0), cancelled=True) is None
    assert meter.usage_of(tokens(0, 0)) is None
    part = meter.usage_of(tokens(7, 1), cancelled=True)
    assert part is not None
    assert (part["total_tokens"], part["estimated"]) == (8, True)
    assert measured(meter, tokens(7, 1)).estimated is False


def test_a_request_aside_makes_the_first_turn_an_estimate_where_its_cost_is_told() -> None:
    for amount, first in ((0.5, True), (None, False)):
        meter = UsageMeter(Quirks(side_requests=True))
        for turn, estimated in enumerate((first, False), 1):
            meter.start_prompt()
            meter.observe(cost(None if amount is None else amount * turn))
            assert measured(meter, tokens(5, 2)).estimated is estimated


@pytest.mark.parametrize(
    "update", [{}, {"cost": 1}, cost("1"), cost(True), cost(-1), cost(1, "EUR"), cost(1e99)]
)
def test_an_odd_cost_is_no_cost(update: Json) -> None:
    meter = UsageMeter()
    meter.start_prompt()
    meter.observe(update)
    assert meter.usage_of({}) is None


def test_tokens_come_from_the_answer_in_either_spelling() -> None:
    apart = measured(UsageMeter(), tokens(5, 2, 1))
    assert (apart.input_tokens, apart.output_tokens, apart.cached_tokens, apart.total_tokens) == (5, 2, 1, 8)
    gemini = {"_meta": {"quota": {"token_count": {"input_tokens": 5, "output_tokens": 2}}}}
    assert measured(UsageMeter(), gemini).input_tokens == 5
    odd = {"usage": {"inputTokens": "5", "outputTokens": -2, "cachedReadTokens": 1e9}}
    assert UsageMeter().usage_of(odd) is None
    assert UsageMeter().usage_of({"_meta": {"quota": 1}}) is None


def test_the_total_tells_whether_cached_tokens_are_part_of_the_input() -> None:
    inside = {"usage": {"inputTokens": 5, "outputTokens": 2, "cachedReadTokens": 1, "totalTokens": 7}}
    found = measured(UsageMeter(), inside)
    assert (found.input_tokens, found.cached_tokens, found.total_tokens) == (4, 1, 7)
    written = measured(UsageMeter(), tokens(5, 2, 1, cachedWriteTokens=10, thoughtTokens=3))
    assert (written.input_tokens, written.output_tokens, written.total_tokens) == (15, 5, 21)


def test_a_running_total_is_split_into_turns_also_over_a_restart() -> None:
    quirks = Quirks(usage="cumulative", counter="session")
    meter = UsageMeter(quirks)
    meter.start_prompt()
    assert measured(meter, tokens(100, 10, 5)).input_tokens == 100
    meter.start_prompt()
    meter.observe(cost(0.5))
    second = measured(meter, tokens(150, 30, 6))
    assert (second.input_tokens, second.output_tokens, second.cached_tokens) == (50, 20, 1)
    again = UsageMeter(quirks, None, second.counter)
    again.start_prompt()
    again.observe(cost(0.75))
    third = measured(again, tokens(160, 31, 6))
    assert (third.input_tokens, third.output_tokens, third.cost_usd) == (10, 1, 0.25)


def test_a_total_that_begins_with_each_process_is_not_taken_for_one_that_goes_on() -> None:
    before = {"input_tokens": 100, "output_tokens": 10, "cached_tokens": 0, "cost_usd": 1.0}
    meter = UsageMeter(Quirks(usage="cumulative"), None, before)
    meter.start_prompt()
    meter.observe(cost(1.5))
    found = measured(meter, tokens(120, 12))
    assert (found.input_tokens, found.cost_usd, found.counter) == (120, 1.5, None)


def test_numbers_of_the_last_call_are_marked_when_there_were_more() -> None:
    meter = UsageMeter(Quirks(usage="last_call"))
    meter.start_prompt()
    assert not measured(meter, tokens(5, 2)).estimated
    meter.start_prompt()
    meter.observe({"sessionUpdate": "tool_call", "toolCallId": "1"})
    assert measured(meter, tokens(5, 2)).estimated


def test_numbers_told_call_by_call_are_added_up_for_each_turn() -> None:
    meter = UsageMeter(Quirks(usage="per_call"))
    for _ in range(2):
        meter.start_prompt()
        meter.observe({"sessionUpdate": "agent_message_chunk", "_meta": tokens(5, 2, 1)})
        meter.observe({"sessionUpdate": "agent_message_chunk", "_meta": {"usage": 1}})
        meter.observe({"sessionUpdate": "tool_call", "_meta": "x"})
        meter.observe({"sessionUpdate": "agent_message_chunk", "_meta": tokens(6, 3)})
        found = measured(meter, {})
        assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (11, 5, 1)
        assert not found.estimated
    meter.start_prompt()
    assert meter.usage_of(tokens(1, 1)) is None


def test_what_is_known_before_the_answer_is_that_turns_alone() -> None:
    meter = UsageMeter(Quirks(usage="per_call"), Prices({"m": Price(input=1.0, output=1.0, cached=1.0)}))
    meter.start_prompt()
    assert meter.used_so_far() == Used()
    assert meter.observe({"sessionUpdate": "agent_message_chunk", "_meta": tokens(5, 2, 1)})
    assert not meter.observe({"sessionUpdate": "agent_message_chunk"})
    used = meter.used_so_far("m")
    assert replace(used, usage=None) == Used(tokens=8, cost_usd=8 / 1_000_000)
    told = {"input_tokens": 5, "output_tokens": 2, "cached_tokens": 1, "total_tokens": 8}
    whole = {**told, "cost_usd": 8 / 1_000_000, "estimated": True, "cost_estimated": True}
    assert used.usage == whole, "if no answer comes any more"
    assert meter.observe(cost(0.5))
    for call in ("1", "1", "2"):
        assert meter.observe({"sessionUpdate": "tool_call", "toolCallId": call})
    used = meter.used_so_far("m")
    assert replace(used, usage=None) == Used(tokens=8, cost_usd=0.5, tool_calls=2), "a call is told twice"
    assert used.usage == {**told, "cost_usd": 0.5, "estimated": True, "cost_estimated": False}
    meter.start_prompt()
    assert meter.used_so_far("m") == Used()
    assert UsageMeter().used_so_far() == Used()


def test_numbers_that_mean_nothing_are_left_out() -> None:
    assert UsageMeter(Quirks(usage="none")).usage_of(tokens(5, 2)) is None


def test_a_cost_is_computed_only_where_the_agent_tells_none_and_is_marked() -> None:
    meter = UsageMeter(Quirks(), PRICES)
    meter.start_prompt()
    found = measured(meter, tokens(1_000_000, 10_000, 500_000), "provider/BIG-2026")
    assert found.cost_usd == pytest.approx(10.0 + 1.0 + 0.5)
    assert found.cost_estimated
    assert found.estimated
    meter.observe(cost(3))
    told = measured(meter, tokens(1, 1), "big")
    assert (told.cost_usd, told.cost_estimated) == (3.0, False)
    assert measured(UsageMeter(Quirks(), PRICES), tokens(1, 1), "unknown").cost_usd is None


@pytest.mark.parametrize(
    "name",
    ["big", "some/Big", "big-20260101", "big@20260101", "big-2026-01-01", "big-001", "big-latest"],
)
def test_an_edition_of_a_model_costs_what_the_model_does(name: str) -> None:
    assert PRICES.cost(name, Tokens(1_000_000)) == 10.0


@pytest.mark.parametrize("name", ["big-7", "big.7", "bigger", "big-nano", "small", "", None])
def test_a_name_that_is_not_in_the_table_has_no_price(name: str | None) -> None:
    assert PRICES.cost(name, Tokens(1)) is None


@pytest.mark.parametrize("name", ["big-mini", "big-mini[1m]", "big-mini-preview-06-05", "big-mini-20260101"])
def test_a_smaller_model_is_another_model(name: str) -> None:
    assert PRICES.cost(name, Tokens(1_000_000)) == 1.0


def test_the_table_of_prices_can_be_read_and_a_cache_is_never_dearer() -> None:
    prices = Prices.read()
    assert prices.cost("gpt-5-mini", Tokens(1_000_000)) == 0.25
    for name in ("claude-sonnet-4-5-20250929[1m]", "kimi-k2-0905-preview", "grok-code-fast-1", "gpt-5-codex"):
        assert prices.cost(name, Tokens(1)) is not None, name
    assert all(price.cached <= price.input <= price.output for price in prices._models.values())


async def test_a_silent_agent_says_nothing(bench: Bench) -> None:
    async with bench.scripted("--no-usage") as agent:
        assert (await agent.prompt("hi", Notebook())).usage is None


async def test_a_cumulative_agent_is_measured_by_its_difference(bench: Bench) -> None:
    quirks = {"usage": "cumulative", "counter": "session"}
    async with bench.scripted("--usage-cumulative", quirks=quirks) as agent:
        first = Usage.model_validate((await agent.prompt("usage 100 20 7", Notebook())).usage)
        second = Usage.model_validate((await agent.prompt("usage 30 5", Notebook())).usage)
        name = agent.agent_session_id
    more: Json = {"quirks": quirks, "agent_session_id": name, "counter": second.counter}
    async with bench.scripted("--usage-cumulative", **more) as agent:
        assert agent.how == "loaded"
        third = Usage.model_validate((await agent.prompt("usage 1 2 3", Notebook())).usage)
    counted = [(one.input_tokens, one.output_tokens, one.cached_tokens) for one in (first, second, third)]
    assert counted == [(100, 20, 7), (30, 5, 0), (1, 2, 3)]
