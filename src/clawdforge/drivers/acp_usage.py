"""What an agent says about tokens and money, in one shape. Agents differ; where one is silent, so is this."""

from collections.abc import Mapping
from typing import Any

from clawdforge.wire.base import Json


class UsageMeter:
    """Follows an agent's running cost, which counts on from prompt to prompt, to say what one prompt cost."""

    def __init__(self) -> None:
        self._cost: float | None = None
        self._before: float | None = None

    def begin(self) -> None:
        """A prompt starts."""
        self._before = self._cost

    def see(self, update: Json) -> None:
        """A `usage_update` of the agent."""
        cost = update.get("cost")
        amount = _amount(cost.get("amount")) if isinstance(cost, dict) else None
        if amount is not None and isinstance(cost, dict) and cost.get("currency", "USD") == "USD":
            self._cost = amount

    def of(self, result: Json) -> Json | None:
        """The usage of the prompt that ended with this result; None if the agent says nothing."""
        tokens = _tokens(result)
        cost = self._turn_cost()
        if tokens is None and cost is None:
            return None
        return {
            "input_tokens": _count(tokens, "inputTokens", "input_tokens"),
            "output_tokens": _count(tokens, "outputTokens", "output_tokens"),
            "cached_tokens": _count(tokens, "cachedReadTokens", "cached_tokens"),
            "cost_usd": cost,
        }

    def _turn_cost(self) -> float | None:
        if self._cost is None or self._cost == self._before:
            return None
        before = self._before or 0.0
        # An agent that was started again may count from zero again.
        return self._cost - before if self._cost > before else self._cost


def _tokens(result: Json) -> Mapping[str, Any] | None:
    """`usage` is ACP's own field; `_meta.quota.token_count` is gemini's."""
    usage = result.get("usage")
    if isinstance(usage, dict):
        return usage
    found: Any = result
    for key in ("_meta", "quota", "token_count"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _count(tokens: Mapping[str, Any] | None, *names: str) -> int:
    for name in names:
        value = (tokens or {}).get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return 0


def _amount(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None
