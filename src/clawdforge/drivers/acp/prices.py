"""What models cost: the table in `prices.toml`, looked up by a model's name without its edition."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).with_name("prices.toml")
MILLION: Final = 1_000_000
EDITION: Final = re.compile(r"(?:[-@:](\d{3,8}|\d{4}-\d\d-\d\d|latest|(preview|exp)\b.*)|\[\w+\])+")
"""What may follow a name without making it another model: a date, a number, `preview`, a size of context."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a prompt took and gave. `cached` was read from a cache and is not part of `taken`."""

    taken: int = 0
    given: int = 0
    cached: int = 0

    def plus(self, other: "Tokens") -> "Tokens":
        return Tokens(self.taken + other.taken, self.given + other.given, self.cached + other.cached)

    def since(self, before: "Tokens") -> "Tokens":
        """What a running total grew by; all of it when it has begun again from nothing."""
        grown = Tokens(self.taken - before.taken, self.given - before.given, self.cached - before.cached)
        return self if min(grown.taken, grown.given, grown.cached) < 0 else grown


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float

    def cost_of(self, tokens: Tokens) -> float:
        total = tokens.taken * self.input + tokens.given * self.output + tokens.cached * self.cached
        return total / MILLION


class Prices:
    def __init__(self, models: Mapping[str, Price]) -> None:
        self._models = dict(models)

    @classmethod
    def read(cls, table: Path = TABLE) -> "Prices":
        with table.open("rb") as file:
            found: Mapping[str, Any] = tomllib.load(file)
        return cls({name: Price(**fields) for name, fields in found["models"].items()})

    def cost(self, model: str | None, tokens: Tokens) -> float | None:
        """None for a model that is not in the table. A provider before the name does not matter."""
        name = (model or "").rpartition("/")[2].lower()
        found = self._models.get(name)
        if found is None:
            found = next((self._models[stem] for stem in _stems(name) if stem in self._models), None)
        return None if found is None else found.cost_of(tokens)


def _stems(name: str) -> Iterator[str]:
    """What is left of a name when the edition at its end is taken away."""
    for place in range(len(name) - 1, 0, -1):
        if EDITION.fullmatch(name, place):
            yield name[:place]
