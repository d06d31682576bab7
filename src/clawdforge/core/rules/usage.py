"""What turns and sessions used, as numbers that every store and reader can hold, whatever an agent claims."""

import math
from typing import Any, Final

from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.wire.base import Json
from clawdforge.wire.message import estimate_tokens

MAX_COUNT: Final = 2**53 - 1
"""The largest whole number that is the same in every language; more than anybody will use."""


def bound_usage(usage: Json | None) -> Json | None:
    """The same numbers, none of them larger than can be counted on with; what is no number of ours is 0."""
    return None if usage is None else {name: _bound(value) for name, value in usage.items()}


def estimate_usage(turn: TurnRow, message: MessageRow | None) -> Json | None:
    """Estimate the tokens from the text, for an agent that does not report them."""
    if message is None:
        return None
    taken, given = estimate_tokens(turn.prompt), message.token_count
    return {
        "input_tokens": taken,
        "output_tokens": given,
        "cached_tokens": 0,
        "total_tokens": taken + given,
        "cost_usd": None,
        "estimated": True,
        "cost_estimated": False,
    }


def sum_usage(session: SessionRow, usage: Json | None, message: MessageRow | None) -> Json:
    """The session's sums with a turn's bounded usage, by their columns; they stop at the largest number."""
    usage = usage or {}
    cost = usage.get("cost_usd")
    costs = {"cost_usd": session.cost_usd, "estimated_cost_usd": session.estimated_cost_usd}
    if cost is not None:
        kind = "estimated_cost_usd" if usage.get("cost_estimated") else "cost_usd"
        costs[kind] = (costs[kind] or 0.0) + float(cost)
    return {
        "total_output_tokens": _sum(session.total_output_tokens, message.token_count if message else 0),
        "input_tokens": _sum(session.input_tokens, usage.get("input_tokens")),
        "output_tokens": _sum(session.output_tokens, usage.get("output_tokens")),
        "cached_tokens": _sum(session.cached_tokens, usage.get("cached_tokens")),
        **costs,
    }


def _sum(before: int, more: Any) -> int:
    return min(MAX_COUNT, before + (more if isinstance(more, int) else 0))


def _bound(value: Any) -> Any:
    if isinstance(value, dict):
        return bound_usage(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return min(max(value, 0), MAX_COUNT)
    if isinstance(value, float) and not math.isfinite(value):
        return 0.0
    return value
