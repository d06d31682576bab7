"""Converts records to rows and back: one codec for each table, made from the record's fields."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from clawdforge.core.models.workspaces import Area
from clawdforge.core.records import Maker

R = TypeVar("R")
Value: TypeAlias = int | float | str | bytes | None
Coder: TypeAlias = Callable[[Any], Any]
ASSIGNMENTS: Final = 512
"""Of so many sets of columns that are changed together the statement's part is remembered."""


ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Made once: `json.dumps` makes an encoder with every call that asks for something unusual."""


def to_json(value: Any) -> str:
    """Lossless, also for whole numbers of any size, and readable for a person."""
    text = ENCODE(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair: only its escape can be stored
            return json.dumps(value, separators=(",", ":"))
    return text


class Codec(Generic[R]):
    """Columns have the names of the record's fields; JSON is stored as TEXT, a flag as 0 or 1.

    What somebody edited by hand is read as it is, so that one odd row does not make a whole list unreadable.
    `never_null` names columns that are NOT NULL though their field may be None: JSON's own null stands there.
    """

    def __init__(
        self, record: type[R], table: str, keys: Sequence[str], never_null: Sequence[str] = ()
    ) -> None:
        hints = get_type_hints(record)
        self.record = record
        self.table = table
        self._maker = Maker(record)
        self.names = self._maker.names
        self.changeable = frozenset(self.names) - frozenset(keys)
        self._never_null = frozenset(never_null)
        coders = {name: _coders(hints[name]) for name in self.names}
        self._writers = {name: pair[0] for name, pair in coders.items() if pair}
        self._written = [
            (i, self._writers[n], n in never_null) for i, n in enumerate(self.names) if coders[n]
        ]
        self._places = {name: place for place, name in enumerate(self.names)}
        self._assign = lru_cache(ASSIGNMENTS)(self._make_assignments)
        self._readers = [(i, coders[n][1]) for i, n in enumerate(self.names) if coders[n]]  # type: ignore[index]
        self._named = {name: pair[1] for name, pair in coders.items() if pair}
        marks = ", ".join(f":{name}" for name in self.names)
        self.insert = f"INSERT INTO {table} ({', '.join(self.names)}) VALUES ({marks})"  # noqa: S608 - our own names
        self._find_writers = lru_cache(ASSIGNMENTS)(self._choose_writers)
        self._defaults = self.write(
            {
                field.name: _default_of(field)
                for field in fields(record)  # type: ignore[arg-type]  # a dataclass
                if field.default is not MISSING or field.default_factory is not MISSING
            }
        )

    @property
    def columns(self) -> str:
        return ", ".join(f"{self.table}.{name}" for name in self.names)

    def values(self, row: R) -> dict[str, Value]:
        found = list(self._maker.read(row))
        for index, writer, is_always in self._written:
            if is_always or found[index] is not None:
                found[index] = writer(found[index])
        return dict(zip(self.names, found, strict=True))

    def changes(self, changes: Mapping[str, Any]) -> tuple[str, dict[str, Value]]:
        """The SET part of an update and its values. A name that is not a column never reaches the SQL."""
        assignments, marks = self._assign(tuple(changes))
        return assignments, {marks[name]: value for name, value in self.write(changes).items()}

    def write(self, changes: Mapping[str, Any]) -> dict[str, Value]:
        """Columns as they are stored; their names are known to be right."""
        found = dict(changes)
        for name, writer, is_always in self._find_writers(tuple(found)):
            if is_always or found[name] is not None:
                found[name] = writer(found[name])
        return found

    def _choose_writers(self, names: tuple[str, ...]) -> list[tuple[str, Coder, bool]]:
        """For those of these columns that are stored otherwise, and whether they are when they are None."""
        return [
            (name, self._writers[name], name in self._never_null) for name in names if name in self._writers
        ]

    def _make_assignments(self, names: tuple[str, ...]) -> tuple[str, dict[str, str]]:
        unknown = set(names) - self.changeable
        if unknown:
            raise TypeError(
                f"no such column in {self.table}, or it cannot change: {', '.join(sorted(unknown))}"
            )
        marks = {name: f"new_{name}" for name in sorted(names)}
        return ", ".join(f"{name} = :{mark}" for name, mark in marks.items()), marks

    def read(self, values: Sequence[Any]) -> R:
        found = list(values)
        for index, reader in self._readers:
            if found[index] is not None:
                found[index] = reader(found[index])
        return self._maker.make(found)

    def change(self, row: R, columns: Mapping[str, Value]) -> R:
        """A record in which these columns are otherwise, as they are stored."""
        found: dict[str, Any] = dict(columns)
        for name in self._named.keys() & found.keys():
            if found[name] is not None:
                found[name] = self._named[name](found[name])
        return self._maker.change(row, **found)

    def pick(self, values: Sequence[Any], name: str) -> Any:
        """One column of a row."""
        return values[self._places[name]]

    def put(self, values: Sequence[Any], columns: Mapping[str, Value]) -> tuple[Any, ...]:
        """A row in which these columns are otherwise."""
        found = list(values)
        for name, value in columns.items():
            found[self._places[name]] = value
        return tuple(found)

    def read_named(self, columns: Mapping[str, Value]) -> R:
        """A row that was kept by the names of its columns, perhaps before there were as many as today."""
        return self.read([columns[name] if name in columns else self._defaults[name] for name in self.names])


class Translation(dict[Any, Any]):
    """What is most often read or written, found without a call; the rest is what `other` makes of it."""

    def __init__(self, known: Mapping[Any, Any], other: Coder = lambda word: word) -> None:
        super().__init__(known)
        self._other = other

    def __missing__(self, key: Any) -> Any:
        return self._other(key)


def _default_of(field: "Field[Any]") -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def area_values(area: Area) -> dict[str, Value]:
    """An area as the statements name its parts."""
    first, last = area.inside
    identities = to_json(list(area.identities))
    return {"line": to_json(area.line), "first": first, "last": last, "identities": identities}


def _coders(hint: Any) -> tuple[Coder, Coder] | None:
    """Functions that write and read a value of this type; None where it is stored unchanged."""
    choices = [choice for choice in get_args(hint) if choice is not NoneType]
    inner = choices[0] if NoneType in get_args(hint) and len(choices) == 1 else hint
    kind = get_origin(inner) or inner
    if kind is dict:
        return (
            lambda value: "{}" if value == {} else to_json(value),
            lambda text: {} if text == "{}" else None if text == "null" else _read_json(text),
        )
    if kind is tuple:
        return (
            lambda value: "[]" if value == () else to_json(value),
            Translation({"[]": ()}, _read_list).__getitem__,
        )
    if kind is bool:
        return int, bool
    if isinstance(kind, type) and issubclass(kind, Enum):
        words = Translation({member: member.value for member in kind}, lambda value: kind(value).value)
        return words.__getitem__, Translation({member.value: member for member in kind}).__getitem__
    return None


def _read_json(text: str) -> Any:
    """What was written as JSON; a text that somebody put there by hand stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_list(text: str) -> tuple[Any, ...]:
    found = _read_json(text)
    return tuple(found) if isinstance(found, list) else (found,)
