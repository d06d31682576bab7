"""What models cost: the table in `prices.toml`, looked up by the beginning of a model's name."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).with_name("prices.toml")
MILLION: Final = 1_000_000


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

    def of(self, tokens: Tokens) -> float:
        total = tokens.taken * self.input + tokens.given * self.output + tokens.cached * self.cached
        return total / MILLION


class Prices:
    def __init__(self, models: Mapping[str, Price]) -> None:
        self._models = dict(sorted(models.items(), key=lambda item: -len(item[0])))

    @classmethod
    def read(cls, table: Path = TABLE) -> "Prices":
        with table.open("rb") as file:
            found: Mapping[str, Any] = tomllib.load(file)
        return cls({name: Price(**fields) for name, fields in found["models"].items()})

    def cost(self, model: str | None, tokens: Tokens) -> float | None:
        """None for a model that is not in the table. A provider before the name does not matter."""
        name = (model or "").rpartition("/")[2].lower()
        price = next((price for prefix, price in self._models.items() if name.startswith(prefix)), None)
        return None if price is None else price.of(tokens)
