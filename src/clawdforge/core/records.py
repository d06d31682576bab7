"""Makes and changes records of many fields, a third as long as their own `__init__` and `replace` take.

These set a frozen field by its name, looked up each time; a maker finds the setters of all fields once.
"""

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Maker(Generic[R]):
    """Of one kind of frozen dataclass with slots, all of whose fields are given."""

    def __init__(self, record: type[R]) -> None:
        self.record = record
        self.names = tuple(field.name for field in fields(record))  # type: ignore[arg-type]  # a dataclass
        self._setters = {name: vars(record)[name].__set__ for name in self.names}
        self._in_order = tuple(self._setters.values())
        self._read = attrgetter(*self.names)

    def read(self, row: R) -> tuple[Any, ...]:
        """What the fields hold, in their order."""
        found: tuple[Any, ...] = self._read(row)
        return found

    def make(self, values: Sequence[Any]) -> R:
        made = object.__new__(self.record)
        for put, value in zip(self._in_order, values, strict=True):
            put(made, value)
        return made

    def change(self, row: R, **changes: Any) -> R:
        """Another one, in which these are otherwise."""
        made = self.make(self._read(row))
        for name, value in changes.items():
            self._setters[name](made, value)
        return made
