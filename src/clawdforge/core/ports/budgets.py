"""What core asks of a store about budgets: bounds, purses, what turns hold of them. Parts of View and Tx."""

from collections.abc import Collection
from typing import Protocol

from clawdforge.core.models.budgets import BudgetRow, PurseRow, ReservationRow
from clawdforge.wire.base import Micros


class BudgetView(Protocol):
    def budgets(self) -> list[BudgetRow]:
        """All of the app's, the operator's first."""
        ...

    def budgets_for(self, token_id: str | None, session_ids: Collection[str]) -> list[BudgetRow]:
        """Those that bound the app, this token, or one of these sessions."""
        ...

    def budget(self, budget_id: str) -> BudgetRow | None: ...
    def purse(self, budget_id: str, starts_at: Micros) -> PurseRow | None: ...
    def reservations(self, holder_id: str, turn_index: int) -> list[ReservationRow]:
        """What this turn holds, of every purse."""
        ...


class BudgetTx(Protocol):
    def put_budget(self, row: BudgetRow) -> BudgetRow:
        """Add it, or change the one of the same scope, period and author, which keeps its id."""
        ...

    def remove_budget(self, budget_id: str) -> bool:
        """With its purses, and what turns hold of them; whether there was one."""
        ...

    def put_purse(self, row: PurseRow) -> None: ...
    def remove_old_purses(self, budget_id: str, before: Micros) -> None:
        """Those of periods that began before then, unless a turn still holds something of them."""
        ...

    def put_reservation(self, row: ReservationRow) -> None: ...
    def remove_reservations(self, holder_id: str, turn_index: int) -> None: ...
