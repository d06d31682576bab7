"""Compares what turns hold of budgets with the turns themselves, and gives back what is held by none."""

from collections.abc import Iterator
from dataclasses import replace

from clawdforge.core.clock import Clock
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.rules.budgets import NOTHING, Spending, read_spending
from clawdforge.core.rules.purses import settle
from clawdforge.stores.sqlite.budgets import lost_reservations, miscounted_purses
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.system import SqliteSystemView
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.upkeep.doctor import REPAIR, Finding


def check_purses(db: Db, clock: Clock, *, repair: bool) -> Iterator[Finding]:
    """A turn settles in the transaction that ends it, so one that ended and still holds was never counted."""
    found = 0
    with db.connection:
        for app, session_id, turn_index in lost_reservations(db):
            found += 1
            text = f"{session_id}: turn {turn_index} has ended, but still holds a part of a budget"
            if repair:
                tx = SqliteTx(db, app, clock)
                spending = _spending_of(tx.turn(session_id, turn_index))
                settle(tx, session_id, turn_index, spending, clock.now())
            yield _tell(text, "counted", repair=repair)
        for app, run_id in SqliteSystemView(db).lost_runs() if repair else ():  # nothing runs now
            found += 1
            settle(SqliteTx(db, app, clock), run_id, 0, Spending(), clock.now())
            yield _tell(
                f"the run {run_id} has ended, but still holds a part of a budget", "counted", repair=True
            )
        for app, budget_id, starts_at, tokens, cost in miscounted_purses(db):
            found += 1
            text = f"the budget {budget_id} of {app} counts more or less as held than turns hold"
            if repair:
                tx = SqliteTx(db, app, clock)
                purse = tx.purse(budget_id, starts_at)
                if purse is not None:
                    tx.put_purse(replace(purse, reserved_tokens=tokens, reserved_cost=cost))
            yield _tell(text, "counted anew", repair=repair)
    if not found:
        yield Finding("ok", "budgets", "what is held of them is held by turns that have not ended")


def _spending_of(turn: TurnRow | None) -> Spending:
    return NOTHING if turn is None or turn.started_at is None else read_spending(turn.usage)


def _tell(text: str, done: str, *, repair: bool) -> Finding:
    return Finding("ok", "repair", f"{text}; {done}") if repair else Finding("bad", "budgets", text, REPAIR)
