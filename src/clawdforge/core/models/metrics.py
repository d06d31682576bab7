"""A metric with its present values, whoever reads it: `/metrics`, or a collector."""

from dataclasses import dataclass
from typing import Literal

from clawdforge.core.histogram import Sample


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its present values."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    about: str
    samples: tuple[Sample, ...]
