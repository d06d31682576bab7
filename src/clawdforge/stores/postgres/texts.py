"""Texts and numbers as Postgres can hold them: NUL, which it refuses, has another form there."""

from typing import Any, Final

from clawdforge.stores.sqlite.rows import Value

MARK: Final = "\ufdd0"
"""No character, and never will be one. Before a 0 it stands for NUL, before a 1 for itself."""
MOST: Final = 2**63 - 1


def to_postgres(value: Value) -> Value:
    """Raises as SQLite does for what cannot be held: half a surrogate pair, a number beyond 64 bits."""
    if isinstance(value, str):
        if not value.isascii():
            value.encode()
        if "\0" in value or MARK in value:
            return value.replace(MARK, f"{MARK}1").replace("\0", f"{MARK}0")
    elif isinstance(value, int) and not -MOST - 1 <= value <= MOST:
        raise OverflowError(f"{value} has more than 64 bits")
    return value


def is_plain(name: Value) -> bool:
    """Whether a name is the same in Postgres."""
    return isinstance(name, str) and name.isascii() and "\0" not in name


def from_postgres(value: Any) -> Any:
    if isinstance(value, str) and MARK in value:
        return value.replace(f"{MARK}0", "\0").replace(f"{MARK}1", MARK)
    return value
