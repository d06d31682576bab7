"""The limits that a turn carries: which of them is crossed, and how that is said."""

from collections.abc import Mapping
from typing import Final

from clawdforge.core.models.agents import Used
from clawdforge.wire.base import Json

STOP_REASON: Final = "stopped_by_limit"
"""The stop reason of a turn that crossed a limit. Its outcome is that of every turn that was cancelled."""

BUDGET: Final = "budget"
"""What `stopped_by` names where it was not a limit of the turn's own."""

NO_ROOM: Final = (
    "the turn was stopped because its app may store no more (max_bytes); what was said until then is kept."
    " Delete sessions that nobody needs: `clawdforge sessions delete ID`"
)

CENTS: Final = 9
"""Costs are compared to so many digits after the point: a difference of two sums is never exact."""


def read_limits(stored: Json) -> dict[str, float]:
    """The limits of a turn's row; what somebody put there by hand and is no number is no limit."""
    found = stored.items() if isinstance(stored, dict) else ()
    return {name: value for name, value in found if type(value) in (int, float)}


def find_crossed(limits: Mapping[str, float], used: Used) -> tuple[str, float] | None:
    """The first limit that is crossed, and what was used. To use just as much is no crossing."""
    cost = None if used.cost_usd is None else round(used.cost_usd, CENTS)
    amounts = {"max_cost_usd": cost, "max_tokens": used.tokens, "max_tool_calls": used.tool_calls}
    for name, amount in amounts.items():
        limit = limits.get(name)
        if limit is not None and amount is not None and amount > limit:
            return name, amount
    return None


def used_by(usage: Json | None, tool_calls: int) -> Used:
    """What the agent reported of a whole turn; what it did not report is not known."""
    total, cost = (usage or {}).get("total_tokens"), (usage or {}).get("cost_usd")
    return Used(
        tokens=total if isinstance(total, int) else None,
        cost_usd=cost if isinstance(cost, int | float) else None,
        tool_calls=tool_calls,
    )


def describe_crossing(name: str, limit: float, amount: float) -> str:
    return (
        f"the turn was stopped by its limit {name} of {limit:.10g}, at {amount:.10g}; what was said is kept"
    )
