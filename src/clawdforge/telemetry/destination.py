"""Where telemetry goes, in whose name, and how much of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A collector. Its headers may hold a secret."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    with_content: bool = False
    version: str
    node: str
