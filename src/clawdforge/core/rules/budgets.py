"""What a budget means, as pure functions: what is left, what a turn holds of it, how a refusal is said."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from clawdforge.core.clock import SECOND
from clawdforge.core.models.budgets import BudgetRow, PurseRow, ReservationRow
from clawdforge.core.rules.periods import period_end, period_start
from clawdforge.wire.base import Json, Micros, to_iso_seconds
from clawdforge.wire.budgets import BudgetScope
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import BudgetExceeded

MICRO: Final = 1_000_000
MAX_AMOUNT: Final = 2**53 - 1
"""Sums stop here: the largest whole number that is the same in every language."""

SHARES: Final = 20
"""A turn that carries no limit of its own holds such a part of a budget, unless the budget says how much."""

UNREACHED: Final = frozenset(
    {ErrorCode.AGENT_NOT_INSTALLED, ErrorCode.AGENT_START_FAILED, ErrorCode.AGENT_AUTH_REQUIRED}
)
"""A turn that failed like this has cost nothing."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens, and money in micro-dollars."""

    tokens: int = 0
    cost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a turn has used; None where nobody told. What was estimated is marked."""

    tokens: int | None = None
    cost: int | None = None
    tokens_estimated: bool = False
    cost_estimated: bool = False


NOTHING: Final = Spending(tokens=0, cost=0)


def to_micro_dollars(usd: float) -> int:
    """Money as a whole number, whatever an agent claims."""
    return min(max(round(min(max(usd, 0.0), MAX_AMOUNT / MICRO) * MICRO), 0), MAX_AMOUNT)


def to_usd(cost: int) -> float:
    return cost / MICRO


def default_share(limit: int | None) -> int:
    return 0 if limit is None else max(1, limit // SHARES)


def read_spending(usage: Json | None) -> Spending:
    """What a turn's usage says, that was reported or estimated from the text."""
    if usage is None:
        return Spending()
    total, cost = usage.get("total_tokens"), usage.get("cost_usd")
    return Spending(
        tokens=min(max(total, 0), MAX_AMOUNT) if isinstance(total, int) else None,
        cost=to_micro_dollars(cost) if isinstance(cost, int | float) else None,
        tokens_estimated=bool(usage.get("estimated")),
        cost_estimated=bool(usage.get("cost_estimated")),
    )


def empty_purse(budget: BudgetRow, at: Micros) -> PurseRow:
    return PurseRow(
        app_name=budget.app_name, budget_id=budget.budget_id, starts_at=period_start(budget.period, at)
    )


def find_left(budget: BudgetRow, purse: PurseRow) -> tuple[int | None, int | None]:
    """Tokens and money that no turn has spent or holds; None where there is no limit."""
    tokens = purse.spent_tokens + purse.estimated_tokens + purse.reserved_tokens
    cost = purse.spent_cost + purse.estimated_cost + purse.reserved_cost
    return (
        None if budget.max_tokens is None else max(0, budget.max_tokens - tokens),
        None if budget.max_cost is None else max(0, budget.max_cost - cost),
    )


def find_hold(budget: BudgetRow, purse: PurseRow, limits: Mapping[str, float]) -> Amount | None:
    """What a turn is to hold of a purse; None when there is not enough.

    A limit that it carries is held whole, since it may use as much. Without one it holds a share, or what is
    left if that is less: the last turn may spend more than that, but no second one gets in beside it.
    """
    tokens_left, cost_left = find_left(budget, purse)
    own_cost = limits.get("max_cost_usd")
    tokens = _hold(tokens_left, _whole(limits.get("max_tokens")), budget.share_tokens)
    cost = _hold(cost_left, None if own_cost is None else to_micro_dollars(own_cost), budget.share_cost)
    return None if tokens is None or cost is None else Amount(tokens, cost)


def has_crossed(budget: BudgetRow, purse: PurseRow, used: Amount) -> bool:
    """Whether more was spent than the budget has, with what a running turn has used. As much is no crossing.

    What others hold does not count: they may never use it, and those in the queue have used nothing.
    """
    tokens = purse.spent_tokens + purse.estimated_tokens + used.tokens
    cost = purse.spent_cost + purse.estimated_cost + used.cost
    over_tokens = budget.max_tokens is not None and tokens > budget.max_tokens
    return over_tokens or (budget.max_cost is not None and cost > budget.max_cost)


def is_due(budget: BudgetRow, purse: PurseRow) -> bool:
    """Whether so much is spent that somebody should be warned, and nobody was in this period."""
    if purse.warned_at is not None:
        return False
    tokens, cost = purse.spent_tokens + purse.estimated_tokens, purse.spent_cost + purse.estimated_cost
    pairs = ((tokens, budget.max_tokens), (cost, budget.max_cost))
    return any(limit is not None and spent > 0 and spent >= limit * budget.warn_at for spent, limit in pairs)


def is_spent(budget: BudgetRow, purse: PurseRow) -> bool:
    """Whether all of it is, of tokens or of money; what turns hold does not count."""
    tokens, cost = purse.spent_tokens + purse.estimated_tokens, purse.spent_cost + purse.estimated_cost
    pairs = ((tokens, budget.max_tokens), (cost, budget.max_cost))
    return any(limit is not None and spent >= limit for spent, limit in pairs)


def charge(held: ReservationRow, spending: Spending) -> tuple[Amount, Amount]:
    """What counts as reported and what as estimated when a turn ends.

    What nobody told is estimated as what was held: else a budget would have no end for agents that do not
    report what they cost, and for runs that are cut off.
    """
    tokens, tokens_estimated = spending.tokens, spending.tokens_estimated
    if tokens is None:
        tokens, tokens_estimated = held.tokens, True
    cost, cost_estimated = spending.cost, spending.cost_estimated
    if cost is None:
        cost, cost_estimated = held.cost, True
    told = Amount(0 if tokens_estimated else tokens, 0 if cost_estimated else cost)
    return told, Amount(tokens - told.tokens, cost - told.cost)


def add_up(*amounts: int) -> int:
    return min(MAX_AMOUNT, max(0, sum(amounts)))


def refuse(budget: BudgetRow, purse: PurseRow, at: Micros) -> BudgetExceeded:
    """The error for a turn that a budget does not allow, with what to do next."""
    ends = period_end(budget.period, at)
    when = "it does not begin anew" if ends is None else f"it begins anew at {to_iso_seconds(ends)}"
    return BudgetExceeded(
        f"{describe(budget)} has too little left: {_describe_use(budget, purse)}; {when}, or have it"
        f" raised: {write_command(budget)}",
        retry_after=None if ends is None else max(1, (ends - at) // SECOND),
        budget_id=budget.budget_id,
        scope=budget.scope,
        period=budget.period,
    )


def describe(budget: BudgetRow) -> str:
    whose = "this app" if budget.scope is BudgetScope.APP else f"the {budget.scope} {budget.scope_id}"
    amounts = [
        None if budget.max_cost is None else f"${to_usd(budget.max_cost):g}",
        None if budget.max_tokens is None else f"{budget.max_tokens} tokens",
    ]
    how_often = {"day": " a day", "month": " a month"}.get(budget.period, "")
    return f"the budget of {whose} ({' and '.join(filter(None, amounts))}{how_often})"


def write_command(budget: BudgetRow) -> str:
    """The line that raises a budget, to be pasted; the amounts are the present ones doubled."""
    words = [f"clawdforge budget set --period {budget.period}"]
    if budget.by_operator:
        words.append(f"--app {budget.app_name}")
    if budget.scope is not BudgetScope.APP:
        words.append(f"--{budget.scope} {budget.scope_id}")
    if budget.max_cost is not None:
        words.append(f"--cost {to_usd(2 * budget.max_cost or MICRO):g}")
    if budget.max_tokens is not None:
        words.append(f"--tokens {2 * budget.max_tokens or 100_000}")
    return " ".join([*words, f"--then {budget.action}"])


def _describe_use(budget: BudgetRow, purse: PurseRow) -> str:
    found = []
    if budget.max_cost is not None:
        spent = to_usd(purse.spent_cost + purse.estimated_cost)
        found.append(f"${spent:g} spent and ${to_usd(purse.reserved_cost):g} held by turns")
    if budget.max_tokens is not None:
        spent = purse.spent_tokens + purse.estimated_tokens
        found.append(f"{spent} tokens spent and {purse.reserved_tokens} held by turns")
    return ", ".join(found)


def _hold(left: int | None, own: int | None, share: int) -> int | None:
    """None when there is not enough; 0 where there is no limit."""
    if left is None:
        return 0
    if own is not None:
        held = max(1, own)  # else any number of turns that promise to use nothing would get in
        return held if held <= left else None
    return min(share, left) or None


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
