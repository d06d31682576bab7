"""Converts records to rows and back: one codec for each table, made from the record's fields."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from enum import Enum
from types import NoneType
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from clawdforge.core.workspace import Area

R = TypeVar("R")
Value: TypeAlias = int | float | str | bytes | None
Coder: TypeAlias = Callable[[Any], Any]


def to_json(value: Any) -> str:
    """Lossless, also for whole numbers of any size, and readable for a person."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
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
        self.names = tuple(field.name for field in fields(record))  # type: ignore[arg-type]  # a dataclass
        self.changeable = frozenset(self.names) - frozenset(keys)
        self._never_null = frozenset(never_null)
        coders = {name: _coders(hints[name]) for name in self.names}
        self._writers = {name: pair[0] for name, pair in coders.items() if pair}
        self._readers = [(i, coders[n][1]) for i, n in enumerate(self.names) if coders[n]]  # type: ignore[index]
        self._defaults = {
            field.name: self._write(field.name, _default_of(field))
            for field in fields(record)  # type: ignore[arg-type]  # a dataclass
            if field.default is not MISSING or field.default_factory is not MISSING
        }
        marks = ", ".join(f":{name}" for name in self.names)
        self.insert = f"INSERT INTO {table} ({', '.join(self.names)}) VALUES ({marks})"  # noqa: S608 - our own names

    @property
    def columns(self) -> str:
        return ", ".join(f"{self.table}.{name}" for name in self.names)

    def values(self, row: R) -> dict[str, Value]:
        return {name: self._write(name, getattr(row, name)) for name in self.names}

    def changes(self, changes: Mapping[str, Any]) -> tuple[str, dict[str, Value]]:
        """The SET part of an update and its values. A name that is not a column never reaches the SQL."""
        unknown = changes.keys() - self.changeable
        if unknown:
            raise TypeError(
                f"no such column in {self.table}, or it cannot change: {', '.join(sorted(unknown))}"
            )
        names = sorted(changes)
        assignments = ", ".join(f"{name} = :new_{name}" for name in names)
        return assignments, {f"new_{name}": self._write(name, changes[name]) for name in names}

    def read(self, values: Sequence[Any]) -> R:
        found = list(values)
        for index, reader in self._readers:
            if found[index] is not None:
                found[index] = reader(found[index])
        return self.record(**dict(zip(self.names, found, strict=True)))

    def read_named(self, columns: Mapping[str, Value]) -> R:
        """A row that was kept by the names of its columns, perhaps before there were as many as today."""
        return self.read([columns[name] if name in columns else self._defaults[name] for name in self.names])

    def _write(self, name: str, value: Any) -> Value:
        writer = self._writers.get(name)
        if writer is not None and (value is not None or name in self._never_null):
            value = writer(value)
        written: Value = value
        return written


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
        return to_json, lambda text: {} if text == "{}" else _read_json(text)
    if kind is tuple:
        return to_json, lambda text: () if text == "[]" else _read_list(text)
    if kind is bool:
        return int, bool
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = {member.value: member for member in kind}
        return lambda value: kind(value).value, lambda word: members.get(word, word)
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
