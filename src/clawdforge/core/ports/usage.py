"""What core asks of a store about what turns have used, day by day."""

from typing import Protocol

from clawdforge.core.models.usage import DayUsage, UsageQuery, UsageSum


class UsageView(Protocol):
    def usage_sums(self, query: UsageQuery) -> tuple[list[UsageSum], str | None]:
        """A page in the order of day, app, agent and model, and the cursor of the next one."""
        ...


class UsageTx(UsageView, Protocol):
    def add_usage(self, used: DayUsage) -> None:
        """Count one more turn. It is never taken back, whatever happens to the session."""
        ...

    def forget_usage(self, before: str, limit: int) -> bool:
        """Forget what was used before that day, some of it; True when there is no more of it."""
        ...
