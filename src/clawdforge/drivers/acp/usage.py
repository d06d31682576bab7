"""What an agent says about tokens and money, in one shape. Agents differ; where one is silent, so is this.

What its numbers mean is a quirk of the agent: the turn's sum, the last call's, or a running total, of which
a turn is the difference. Nothing is counted twice: a total that goes on in a new process starts from where
the last turn left it (`counter`).
"""

from collections.abc import Mapping
from typing import Any

from clawdforge.core.models.agents import Used
from clawdforge.drivers.acp.prices import Prices, Tokens
from clawdforge.drivers.acp.updates import word_of
from clawdforge.wire.base import Json
from clawdforge.wire.quirks import Quirks
from clawdforge.wire.turn import MAX_TOOL_CALLS


class UsageMeter:
    """Follows one agent from prompt to prompt. `counter` is where its running totals stood before."""

    def __init__(
        self, quirks: Quirks | None = None, prices: Prices | None = None, counter: Json | None = None
    ) -> None:
        quirks = quirks or Quirks()
        self._meaning = quirks.usage
        self._asks_aside = quirks.side_requests
        self._prompts = 0
        self._goes_on = quirks.counter == "session"
        self._prices = prices
        known = counter if self._goes_on and counter is not None else {}
        self._total = _tokens_of_counter(known)
        self._cost = _amount(known.get("cost_usd"))
        self._before = self._cost
        self._calls = 0
        self._tools: set[int] = set()
        self._seen: Tokens | None = None

    def start_prompt(self) -> None:
        """A prompt starts."""
        self._prompts += 1
        self._before = self._cost
        self._calls = 1
        self._tools = set()
        self._seen = None

    def observe(self, update: Json) -> bool:
        """An update of the agent, of any kind; whether it tells of something that was used."""
        kind = word_of(update)
        if kind == "tool_call":
            self._calls += 1  # its result goes to the model with another call
            if len(self._tools) <= MAX_TOOL_CALLS:  # nobody can ask for more
                self._tools.add(hash(str(update.get("toolCallId"))))
        call = _tokens(update.get("_meta")) if self._meaning == "per_call" else None
        if call is not None:
            self._seen = call.plus(self._seen or Tokens())
        cost = update.get("cost") if kind == "usage_update" else None
        amount = _amount(cost.get("amount")) if isinstance(cost, dict) else None
        if amount is not None and isinstance(cost, dict) and cost.get("currency", "USD") == "USD":
            self._cost = amount
        return kind == "tool_call" or call is not None or amount is not None

    def used_so_far(self, model: str | None = None) -> Used:
        """What is known of the running prompt before it is done: less than `usage_of` for most agents."""
        cost = self._turn_cost()
        if cost is None and self._seen is not None and self._prices is not None:
            cost = self._prices.cost(model, self._seen)
        tokens = None if self._seen is None else self._seen.taken + self._seen.given + self._seen.cached
        usage = self._describe(self._seen, self._turn_cost(), model, partial=True)
        return Used(tokens=tokens, cost_usd=cost, tool_calls=len(self._tools), usage=usage)

    def usage_of(self, result: Json, model: str | None = None, *, cancelled: bool = False) -> Json | None:
        """The usage of the prompt that ended with this result; None if the agent says nothing.

        A prompt that used nothing at all is one of which nothing is said; agents forget to count those that
        were `cancelled`, or count only a part of them.
        """
        tokens = self._turn_tokens(result)
        if tokens == Tokens():
            tokens = None
        cost = self._turn_cost()
        partial = tokens is None or cancelled or (self._meaning == "last_call" and self._calls > 1)
        partial = partial or (self._asks_aside and self._prompts == 1 and cost is not None)
        return self._describe(tokens, cost, model, partial=partial)

    def _describe(
        self, tokens: Tokens | None, cost: float | None, model: str | None, *, partial: bool
    ) -> Json | None:
        """`partial` says that these numbers may be less than what was used."""
        if tokens is None and cost is None:
            return None
        tokens = tokens or Tokens()
        computed = self._prices.cost(model, tokens) if cost is None and self._prices else None
        usage: Json = {
            "input_tokens": tokens.taken,
            "output_tokens": tokens.given,
            "cached_tokens": tokens.cached,
            "total_tokens": tokens.taken + tokens.given + tokens.cached,
            "cost_usd": computed if cost is None else cost,
            "estimated": partial or computed is not None,
            "cost_estimated": computed is not None,
        }
        if self._goes_on:
            usage["counter"] = {
                "input_tokens": self._total.taken,
                "output_tokens": self._total.given,
                "cached_tokens": self._total.cached,
                "cost_usd": self._cost,
            }
        return usage

    def _turn_tokens(self, result: Json) -> Tokens | None:
        if self._meaning == "per_call":
            return self._seen
        tokens = None if self._meaning == "none" else _tokens(result)
        if tokens is not None and self._meaning == "cumulative":
            tokens, self._total = tokens.since(self._total), tokens
        return tokens

    def _turn_cost(self) -> float | None:
        if self._cost is None or self._cost == self._before:
            return None
        before = self._before or 0.0
        # An agent that was started again may count from zero again.
        return self._cost - before if self._cost > before else self._cost


def _tokens(result: Any) -> Tokens | None:
    """`usage` is ACP's own field; `_meta.quota.token_count` is gemini's."""
    if not isinstance(result, dict):
        return None
    found: Any = result.get("usage")
    if not isinstance(found, dict):
        found = result
        for key in ("_meta", "quota", "token_count"):
            found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return None
    taken = _count(found, "inputTokens", "input_tokens")
    given = _count(found, "outputTokens", "output_tokens")
    cached = _count(found, "cachedReadTokens", "cached_tokens")
    written = _count(found, "cachedWriteTokens")
    thought = _count(found, "thoughtTokens")
    total = _count(found, "totalTokens")
    if total and total == taken + given:  # some count what was cached and thought as part of the rest
        return Tokens(max(0, taken - cached), given, min(cached, taken))
    if total == taken + given + cached + written + thought:
        return Tokens(taken + written, given + thought, cached)
    return Tokens(taken + written, given, cached)


def _tokens_of_counter(counter: Json) -> Tokens:
    return Tokens(
        _count(counter, "input_tokens"), _count(counter, "output_tokens"), _count(counter, "cached_tokens")
    )


def _count(tokens: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = tokens.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return 0


def _amount(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None
