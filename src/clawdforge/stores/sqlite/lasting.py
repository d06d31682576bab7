"""What every turn asks for and hardly anybody changes: read once, and again after somebody has written it.

It is what one connection knows, which is the only one of this server that writes. Another program may write
to the file as well: then nothing is known any more.
"""

import re
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Final, TypeVar

T = TypeVar("T")

ROWS: Final = ("apps", "pauses", "budgets", "reservations", "permissions", "webhook_endpoints")
LASTS: Final = ("messages", "session_events")
"""Of these, only which row was added last."""
TABLES: Final = (*ROWS, *LASTS)
"""No trigger adds or changes a row there. What is found depends on nothing else."""
NAMED: Final = re.compile(rf"(?<![.:\w])(?:{'|'.join(ROWS)})\b")
ADDED: Final = re.compile(rf"\b(?:INTO|FROM) ({'|'.join(LASTS)})\b")
MOST: Final = 1000
"""Of each table. Then all is forgotten: the next turns read it again."""
KNOWN: Final = 4096


@lru_cache(KNOWN)
def tables_in(sql: str) -> tuple[str, ...]:
    """Those of which a statement that writes may change what is known."""
    return tuple({*NAMED.findall(sql), *ADDED.findall(sql)})


class Lasting:
    def __init__(self) -> None:
        self._found: dict[str, dict[Hashable, Any]] = {table: {} for table in TABLES}
        self._version: int | None = None

    def begin(self, version: int) -> None:
        """A transaction begins; the version is another one if somebody else has written."""
        if version != self._version:
            self.forget()
            self._version = version

    def find(self, table: str, key: Hashable, read: Callable[[], T]) -> T:
        known = self._found[table]
        if key not in known:
            if len(known) >= MOST:
                known.clear()
            known[key] = read()
        found: T = known[key]
        return found

    def keep(self, table: str, key: Hashable, found: object) -> None:
        """It is this now, after it was written."""
        self._found[table][key] = found

    def forget(self, tables: tuple[str, ...] = TABLES) -> None:
        """They are written, or what was written there is undone."""
        for table in tables:
            self._found[table].clear()
