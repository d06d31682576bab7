"""A budget: what an app, a token or a session may spend in a day, a month or in all."""

from enum import StrEnum
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from clawdforge.wire.base import Reply, StrictRequest

WARN_AT: Final = 0.8
MAX_TOKENS: Final = 2**53 - 1
MAX_USD: Final = 10**9


class BudgetScope(StrEnum):
    """Whose spending it bounds. A session's sub-sessions spend from its budget too."""

    APP = "app"
    TOKEN = "token"  # noqa: S105 - a kind, not a secret
    SESSION = "session"


class BudgetPeriod(StrEnum):
    """When it begins anew: at midnight UTC, on the first of a month, or never."""

    DAY = "day"
    MONTH = "month"
    TOTAL = "total"


class BudgetThen(StrEnum):
    """What happens when nothing is left."""

    REFUSE = "refuse"  # no new turn
    ASK = "ask"  # a person is asked before each turn
    STOP = "stop"  # no new turn, and a running one that crosses it is stopped


BudgetScopeWord: TypeAlias = BudgetScope | Literal["app", "token", "session"]
BudgetPeriodWord: TypeAlias = BudgetPeriod | Literal["day", "month", "total"]
BudgetThenWord: TypeAlias = BudgetThen | Literal["refuse", "ask", "stop"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Usd = Annotated[float, Field(ge=0, le=MAX_USD, allow_inf_nan=False)]


class PutOwnBudget(StrictRequest):
    """Set what may be spent; `id` names the token or the session. The same scope, id and period replace.

    A turn that carries no limit of its own holds a share until it has ended: `share_tokens` and
    `share_cost_usd`, by default a twentieth.
    """

    scope: BudgetScope = BudgetScope.APP
    id: Name | None = None
    period: BudgetPeriod = BudgetPeriod.DAY
    max_tokens: Tokens | None = None
    max_cost_usd: Usd | None = None
    share_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None
    share_cost_usd: Annotated[float, Field(ge=0.000001, le=MAX_USD, allow_inf_nan=False)] | None = None
    warn_at: float = Field(default=WARN_AT, gt=0, le=1, allow_inf_nan=False)
    then: BudgetThen = BudgetThen.REFUSE

    @model_validator(mode="after")
    def check_whole(self) -> Self:
        if self.max_tokens is None and self.max_cost_usd is None:
            raise ValueError("a budget needs max_tokens or max_cost_usd")
        if (self.scope is BudgetScope.APP) != (self.id is None):
            raise ValueError("id names the token or the session; the budget of an app has none")
        return self


class PutBudget(PutOwnBudget):
    """The operator's: for any app."""

    app_name: Name


class Money(Reply):
    """Tokens and dollars."""

    tokens: int = 0
    cost_usd: float = 0.0


class Left(Reply):
    """What can still be spent; null where there is no limit."""

    tokens: int | None = None
    cost_usd: float | None = None


class Budget(Reply):
    """A budget and what has become of it in the present period.

    `spent` was reported by agents; `estimated` is ours, for what they did not report. `reserved` is held by
    turns that have not ended. `period_ends` is in whole seconds, null for `total`.
    """

    budget_id: str
    app_name: str
    scope: BudgetScope
    id: str | None = None
    period: BudgetPeriod
    by_operator: bool
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    share_tokens: int | None = None
    share_cost_usd: float | None = None
    warn_at: float
    then: BudgetThen
    warned: bool = False
    spent: Money
    estimated: Money
    reserved: Money
    left: Left
    period_ends: int | None = None


class BudgetReply(Reply):
    ok: bool = True
    budget: Budget


class BudgetPage(Reply):
    """`next` is the app after which the next page of the operator's list begins."""

    ok: bool = True
    budgets: list[Budget]
    count: int
    next: str | None = None
