"""What rows are read and written through: a connection of one database, and the statements in its dialect."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value


class NewEvents(NamedTuple):
    """Events of a session that follow one another and differ in nothing but their data."""

    session_id: str
    first: int  # the number of the first
    turn: int | None
    type: str
    by_agent: int
    data: Sequence[bytes]


class Statements(Protocol):
    """Inside one transaction or snapshot, from one thread at a time."""

    @property
    def queries(self) -> Queries: ...
    @property
    def unpack(self) -> Callable[[int, int, int, bytes], tuple[EventRow, ...]]: ...

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> list[tuple[Any, ...]]:
        """The rows of a query; with `fits`, those before the first that does not."""
        ...

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None: ...
    def run(self, sql: str, params: dict[str, Value]) -> int:
        """Run a statement. Returns how many rows it changed, not counting those that triggers changed."""
        ...

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> None: ...
    def add_events(self, runs: Sequence[NewEvents]) -> None: ...
