"""What core asks of whoever tells a collector about turns and metrics. Implemented in `telemetry`."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from clawdforge.core.models.metrics import Metric
from clawdforge.core.models.traces import TurnTrace


class Telemetry(Protocol):
    """Takes everything at once and never waits; what it has no room for is dropped, and counted."""

    @property
    def with_content(self) -> bool:
        """Whether what was said is wanted: prompts, answers, and what went into tools and came out."""
        ...

    def record(self, trace: TurnTrace) -> None: ...
    def measure(self, metrics: Sequence[Metric]) -> None: ...
    def miss(self, turns: int = 1) -> None:
        """Count turns that could not be told of."""
        ...

    def counts(self) -> Mapping[tuple[str, str], int]:
        """How many there were, by what they are (`span`, `reading`) and how it went."""
        ...
