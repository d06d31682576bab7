"""Reserving from purses when a turn is accepted, and settling when it has ended, inside a transaction.

A turn holds something of every budget that concerns it, from the transaction that accepts it until the one
that ends it. So no two turns get in where there is room for one, however many come at once and wherever the
server is killed. What is held and spent belongs to the period in which the turn was accepted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from clawdforge.core.models.agents import Used
from clawdforge.core.models.budgets import BudgetRow, PurseRow, ReservationRow
from clawdforge.core.models.events import Draft, draft
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.budgets import (
    Amount,
    Spending,
    add_up,
    charge,
    describe,
    empty_purse,
    find_hold,
    has_crossed,
    is_due,
    is_spent,
    refuse,
    to_micro_dollars,
    to_usd,
)
from clawdforge.core.rules.limits import read_limits
from clawdforge.core.rules.webhooks import tell_crossed
from clawdforge.wire.base import Json, Micros, to_iso_seconds
from clawdforge.wire.budgets import BudgetThen
from clawdforge.wire.event import EventType

MAX_LINE: Final = 8
"""More sessions above one another than there can be."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What a turn is about to hold of a purse."""

    budget: BudgetRow
    purse: PurseRow
    amount: Amount | None  # None: there is not enough

    @property
    def asks(self) -> bool:
        return self.amount is None and self.budget.action is BudgetThen.ASK


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a turn may run though nothing is left. `name` is the same for all turns of a period."""

    name: str
    budget_ids: tuple[str, ...]


def find_token(view: View, by: Principal | None) -> str | None:
    """The token whose budget a caller spends. An agent that calls back spends that of its own turn.

    It may also call between its turns, and then spends that of the last one.
    """
    if by is None or by.session_id is None:
        return None if by is None else by.token_id
    session = view.session(by.session_id)
    last = 0 if session is None else session.last_turn
    turn = view.active_turn(by.session_id) or view.turn(by.session_id, last)
    return None if turn is None else turn.token_id


def reserve_for_turn(tx: Tx, session: SessionRow, turn: TurnRow, at: Micros) -> None:
    """Hold what the turn may use; BudgetExceeded when a budget has not enough for it."""
    holds = list(_plan_holds(tx, turn.token_id, _find_line(tx, session), read_limits(turn.limits), at))
    _check(holds, at, may_ask=True)
    _hold(tx, session.session_id, turn.turn_index, holds)


def reserve_for_run(tx: Tx, run_id: str, token_id: str | None, at: Micros, node: str) -> None:
    """As for a turn; but nobody can be asked about it."""
    holds = list(_plan_holds(tx, token_id, (), {}, at))
    _check(holds, at, may_ask=False)
    _hold(tx, run_id, 0, holds, node)


def can_reserve(view: View, session: SessionRow, turn: TurnRow, at: Micros) -> bool:
    """Whether `reserve_for_turn` would find enough, or somebody to ask."""
    limits = read_limits(turn.limits)
    holds = _plan_holds(view, turn.token_id, _find_line(view, session), limits, at)
    return all(hold.amount is not None or hold.asks for hold in holds)


def find_question(view: View, session_id: str, turn_index: int) -> Question | None:
    """What a person is to be asked before this turn runs."""
    held = [one for one in view.reservations(session_id, turn_index) if one.asks]
    pairs = [(one, found) for one in held if (found := view.budget(one.budget_id)) is not None]
    if not pairs:
        return None
    names = [
        f"{describe(budget)}{f' from {to_iso_seconds(one.starts_at)}' if one.starts_at else ''}"
        for one, budget in pairs
    ]
    return Question(f"run a turn beyond {', '.join(names)}", tuple(one.budget_id for one in held))


def is_asked_about(view: View, turn: TurnRow) -> bool:
    """Whether nobody has said yet that this turn may run: no agent has seen it then."""
    return any(held.asks for held in view.reservations(turn.session_id, turn.turn_index))


def allow(tx: Tx, session_id: str, turn_index: int) -> None:
    """Somebody said that this turn may run though nothing is left for it."""
    for held in tx.reservations(session_id, turn_index):
        if held.asks:
            tx.put_reservation(replace(held, asks=False))


def extend(tx: Tx, session_id: str, turn_index: int, used: Used) -> str | None:
    """Hold what a running turn has used, if that is more than it holds already.

    Returns why it must be stopped, if it has crossed a budget that says so.
    """
    crossed = None
    tokens, cost = used.tokens or 0, to_micro_dollars(used.cost_usd or 0.0)
    for held in tx.reservations(session_id, turn_index):
        budget, purse = tx.budget(held.budget_id), tx.purse(held.budget_id, held.starts_at)
        if budget is None or purse is None:
            continue
        now = Amount(
            0 if budget.max_tokens is None else max(held.tokens, add_up(tokens)),
            0 if budget.max_cost is None else max(held.cost, cost),
        )
        if now != Amount(held.tokens, held.cost):
            purse = _move(purse, Amount(held.tokens, held.cost), now)
            tx.put_purse(purse)
            tx.put_reservation(replace(held, tokens=now.tokens, cost=now.cost))
        if budget.action is BudgetThen.STOP and has_crossed(budget, purse, Amount(add_up(tokens), cost)):
            crossed = f"the turn was stopped: it crossed {describe(budget)}; what was said is kept"
    return crossed


def settle(tx: Tx, holder_id: str, turn_index: int, spending: Spending, at: Micros) -> list[Json]:
    """Give back what a turn holds and count what it has spent; the warnings that this brings, as fields.

    Settling again changes nothing, since nothing is held any more.
    """
    warnings: list[Json] = []
    reservations = tx.reservations(holder_id, turn_index)
    if not reservations:
        return warnings
    for held in reservations:
        budget, purse = tx.budget(held.budget_id), tx.purse(held.budget_id, held.starts_at)
        if budget is None or purse is None:
            continue
        told, estimated = charge(held, spending)
        was_spent = is_spent(budget, purse)
        purse = replace(
            _move(purse, Amount(held.tokens, held.cost), Amount()),
            spent_tokens=add_up(purse.spent_tokens, told.tokens),
            spent_cost=add_up(purse.spent_cost, told.cost),
            estimated_tokens=add_up(purse.estimated_tokens, estimated.tokens),
            estimated_cost=add_up(purse.estimated_cost, estimated.cost),
        )
        if is_due(budget, purse):
            purse = replace(purse, warned_at=at)
            warnings.append(_warning(budget, purse))
            tell_crossed(tx, "warning", held, warnings[-1], at)
        if is_spent(budget, purse) and not was_spent:
            tell_crossed(tx, "limit", held, _warning(budget, purse), at)
        tx.put_purse(purse)
    tx.remove_reservations(holder_id, turn_index)
    return warnings


def settle_turn(tx: Tx, turn: TurnRow, spending: Spending, at: Micros) -> list[Draft]:
    """Settle, and write the warnings into the audit; their events are returned."""
    warnings = settle(tx, turn.session_id, turn.turn_index, spending, at)
    for warning in warnings:
        tx.audit(turn.session_id, EventType.BUDGET_WARNED, at, warning)
    return [draft(EventType.BUDGET_WARNED, turn.turn_index, at, warning) for warning in warnings]


def settle_run(tx: Tx, run_id: str, spending: Spending, at: Micros) -> None:
    for warning in settle(tx, run_id, 0, spending, at):
        tx.audit(None, EventType.BUDGET_WARNED, at, warning)


def _find_line(view: View, session: SessionRow) -> list[str]:
    """A session and those that it was made under, whose budgets it spends as well."""
    line, at = [session.session_id], session.parent_session_id
    while at is not None and len(line) < MAX_LINE:
        line.append(at)
        parent = view.session(at)
        at = parent.parent_session_id if parent else None
    return line


def _plan_holds(
    view: View, token_id: str | None, line: Sequence[str], limits: Mapping[str, float], at: Micros
) -> Iterator[Hold]:
    for budget in view.budgets_for(token_id, line):
        fresh = empty_purse(budget, at)
        purse = view.purse(budget.budget_id, fresh.starts_at) or fresh
        yield Hold(budget, purse, find_hold(budget, purse, limits))


def _check(holds: Sequence[Hold], at: Micros, *, may_ask: bool) -> None:
    for hold in holds:
        if hold.amount is None and not (may_ask and hold.asks):
            raise refuse(hold.budget, hold.purse, at)


def _hold(tx: Tx, holder_id: str, turn_index: int, holds: Sequence[Hold], node: str | None = None) -> None:
    for hold in holds:
        amount, purse = hold.amount or Amount(), hold.purse
        tx.put_purse(_move(purse, Amount(), amount))
        if purse == empty_purse(hold.budget, purse.starts_at):
            tx.remove_old_purses(purse.budget_id, purse.starts_at)
        tx.put_reservation(
            ReservationRow(
                app_name=purse.app_name,
                holder_id=holder_id,
                turn_index=turn_index,
                budget_id=purse.budget_id,
                starts_at=purse.starts_at,
                tokens=amount.tokens,
                cost=amount.cost,
                asks=hold.asks,
                node=node,
            )
        )


def _move(purse: PurseRow, before: Amount, after: Amount) -> PurseRow:
    return replace(
        purse,
        reserved_tokens=add_up(purse.reserved_tokens, after.tokens, -before.tokens),
        reserved_cost=add_up(purse.reserved_cost, after.cost, -before.cost),
    )


def _warning(budget: BudgetRow, purse: PurseRow) -> Json:
    return {
        "budget_id": budget.budget_id,
        "scope": budget.scope.value,
        "id": budget.scope_id or None,
        "period": budget.period.value,
        "warn_at": budget.warn_at,
        "max_tokens": budget.max_tokens,
        "max_cost_usd": None if budget.max_cost is None else to_usd(budget.max_cost),
        "tokens": add_up(purse.spent_tokens, purse.estimated_tokens),
        "cost_usd": to_usd(add_up(purse.spent_cost, purse.estimated_cost)),
    }
