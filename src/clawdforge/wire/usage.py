"""What turns have used, day by day: `GET /usage`, and `GET /admin/usage` with `by`."""

from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import Field

from clawdforge.wire.base import Reply


class UsageBy(StrEnum):
    """What usage can be told apart by; `app` is for the operator."""

    DAY = "day"
    AGENT = "agent"
    MODEL = "model"
    APP = "app"


UsageByWord: TypeAlias = Literal["day", "agent", "model", "app"]


class UsageAmount(Reply):
    """Tokens and money; `cost_usd` is null where nobody told or computed one."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0
    cost_usd: float | None = None


class UsageRow(Reply):
    """What turns have used together; names that were not asked for are null, and so is an agent's own model.

    A turn is counted on the day on which it ended, in UTC, also when it was undone or its session purged.
    `reported` is what agents told; `estimated` counts the text of turns whose agent told nothing, and costs
    that were computed from a table of prices. The two are never added to each other.
    """

    day: str | None = None
    app: str | None = None
    agent: str | None = None
    model: str | None = None
    turns: int
    reported: UsageAmount = Field(default_factory=UsageAmount)
    estimated: UsageAmount = Field(default_factory=UsageAmount)


class UsagePage(Reply):
    """A page of rows, by day, app, agent and model; `first_day` and `last_day` are both counted."""

    ok: bool = True
    first_day: str
    last_day: str
    rows: list[UsageRow]
    count: int
    next: str | None = None
