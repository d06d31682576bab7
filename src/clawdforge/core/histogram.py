"""Counting how long things take, in classes."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""


class Histogram:
    """How long something took, in classes. One thread counts; any may read."""

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(sorted(bounds))
        self._counts = [0] * (len(self.bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self._sum += value

    def samples(self) -> tuple[Sample, ...]:
        """Each class counts all that took no longer, the last one everything."""
        total, found = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), tuple(self._counts), strict=True):
            total += count
            found.append(Sample(total, {"le": bound}, "_bucket"))
        return (*found, Sample(self._sum, suffix="_sum"), Sample(total, suffix="_count"))
