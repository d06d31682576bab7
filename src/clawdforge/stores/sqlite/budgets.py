"""An app's budgets, their purses, and what turns hold of them."""

from collections.abc import Collection

from clawdforge.core.models.budgets import BudgetRow, PurseRow, ReservationRow
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.rows import to_json
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.base import Micros


class BudgetRows(OwnRows):
    """What can be read."""

    def budgets(self) -> list[BudgetRow]:
        return self._list(self._q.budget, "budgets")

    def budgets_for(self, token_id: str | None, session_ids: Collection[str]) -> list[BudgetRow]:
        sessions = to_json(list(session_ids))
        return self._list(self._q.budget, "budgets_for", token=token_id, sessions=sessions)

    def budget(self, budget_id: str) -> BudgetRow | None:
        return self._get(self._q.budget, "budget", budget=budget_id)

    def purse(self, budget_id: str, starts_at: Micros) -> PurseRow | None:
        return self._get(self._q.purse, "purse", budget=budget_id, starts=starts_at)

    def reservations(self, holder_id: str, turn_index: int) -> list[ReservationRow]:
        return self._list(self._q.reservation, "reservations", holder=holder_id, turn=turn_index)


class BudgetChanges(BudgetRows):
    """What can be changed."""

    def put_budget(self, row: BudgetRow) -> BudgetRow:
        self._check_own(row.app_name)
        values = self._q.budget.values(row)
        self._db.run(self._q.tx["put_budget"], {"app": self.app, **values})
        return next(one for one in self.budgets() if _key(one) == _key(row))

    def remove_budget(self, budget_id: str) -> bool:
        for name in ("remove_reservations_of_budget", "remove_purses_of_budget"):
            self._run(name, budget=budget_id)
        return self._run("remove_budget", budget=budget_id) > 0

    def put_purse(self, row: PurseRow) -> None:
        self._check_own(row.app_name)
        self._db.run(self._q.replacing(self._q.purse), self._q.purse.values(row))

    def remove_old_purses(self, budget_id: str, before: Micros) -> None:
        self._run("remove_old_purses", budget=budget_id, before=before)

    def put_reservation(self, row: ReservationRow) -> None:
        self._check_own(row.app_name)
        self._db.run(self._q.replacing(self._q.reservation), self._q.reservation.values(row))

    def remove_reservations(self, holder_id: str, turn_index: int) -> None:
        self._run("remove_reservations", holder=holder_id, turn=turn_index)


def _key(row: BudgetRow) -> tuple[str, str, str, bool]:
    return row.scope, row.scope_id, row.period, row.by_operator


def lost_reservations(db: Statements) -> list[tuple[str, str, int]]:
    """(app, session, turn) of turns that hold something of a budget, but have ended or are not there."""
    rows = db.rows(db.queries.inspection["lost_reservations"], {})
    return [(str(app), str(session_id), int(turn)) for app, session_id, turn in rows]


def miscounted_purses(db: Statements) -> list[tuple[str, str, int, int, int]]:
    """(app, budget, start) of purses that miscount what is held, and the tokens and cost that are."""
    return [
        (str(app), str(budget), int(starts), int(tokens), int(cost))
        for app, budget, starts, tokens, cost in db.rows(db.queries.inspection["miscounted_purses"], {})
    ]
