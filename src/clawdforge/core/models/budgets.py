"""The records of budgets: what may be spent, what was, and what turns hold. Money in micro-dollars."""

from dataclasses import dataclass

from clawdforge.wire.base import Micros
from clawdforge.wire.budgets import BudgetPeriod, BudgetScope, BudgetThen


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """A bound. `scope_id` is the token or the session, empty for the whole app."""

    app_name: str
    budget_id: str
    scope: BudgetScope
    scope_id: str = ""
    period: BudgetPeriod
    by_operator: bool = False
    max_tokens: int | None = None
    max_cost: int | None = None
    share_tokens: int = 0  # what a turn holds that carries no limit of its own
    share_cost: int = 0
    warn_at: float
    action: BudgetThen = BudgetThen.REFUSE
    created_at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class PurseRow:
    """What became of a budget in one period: reported by agents, estimated by us, held by turns."""

    app_name: str
    budget_id: str
    starts_at: Micros
    spent_tokens: int = 0
    spent_cost: int = 0
    estimated_tokens: int = 0
    estimated_cost: int = 0
    reserved_tokens: int = 0
    reserved_cost: int = 0
    warned_at: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRow:
    """What one turn holds of one purse. A one-shot run is turn 0 of itself."""

    app_name: str
    holder_id: str  # the session, or the run
    turn_index: int
    budget_id: str
    starts_at: Micros
    tokens: int = 0
    cost: int = 0
    asks: bool = False  # nothing was left: a person is asked before it runs
    node: str | None = None  # where the run goes on; a turn goes on where its session is held
