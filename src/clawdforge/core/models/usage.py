"""What turns have used, day by day: the record of one turn, what can be asked, and the sums of the answer."""

from dataclasses import dataclass

from clawdforge.wire.usage import UsageBy


@dataclass(frozen=True, slots=True, kw_only=True)
class DayUsage:
    """What one turn adds to its day. `day` is a date in UTC; what is not `estimated` was reported."""

    day: str
    agent: str
    model: str = ""  # empty: that of the agent
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    estimated_input: int = 0
    estimated_output: int = 0
    estimated_cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageQuery:
    """Days from the first to the last, both counted, summed over everything that is not in `by`."""

    by: frozenset[UsageBy]
    first: str
    last: str
    limit: int
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum(DayUsage):
    """A row of the answer; names that are not in `by` are empty."""

    app: str
    turns: int
