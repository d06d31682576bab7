"""What many jobs append, as few columns.

Lists go as texts, which Postgres reads: of an array the driver looks at each element several times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from clawdforge.stores.postgres.texts import to_postgres
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents


@dataclass(frozen=True, slots=True)
class Runs:
    """Events, of which those stand together that follow one another and differ in nothing but their data."""

    rows: list[list[Any]]
    """A session, the number of the first, its turn, its type, by whom, its place here, how many follow it."""
    data: list[bytes]


NOTHING = Runs([], [])


def to_runs(events: Sequence[NewEvents]) -> Runs:
    """Raises for what Postgres cannot hold."""
    rows: list[list[Any]] = []
    data: list[bytes] = []
    for run in events:
        names = map(to_postgres, (run.session_id, run.first, run.turn, run.type))
        rows.append([*names, run.by_agent, len(data), len(run.data) - 1])
        data += run.data
    return Runs(rows, data)


def to_columns(
    many: Sequence[Runs], counted: Mapping[tuple[Value, Value], int], heads: Sequence[tuple[Value, ...]]
) -> list[Any] | None:
    """The arguments of `pg_temp.append`; None where there is nothing to append.

    `counted` are bytes by session and app, and `heads` are sessions, apps, heads, what is written, and times.
    """
    if not (many or counted or heads):
        return None
    data: list[bytes] = []
    rows: list[list[Any]] = []
    for runs in many:
        rows += [[*row[:5], row[5] + len(data) + 1, row[6]] for row in runs.rows]
        data += runs.data
    sizes = [len(one) for one in data]
    begins = [1 + end - size for end, size in zip(accumulate(sizes), sizes, strict=True)]
    sessions, apps = [key[0] for key in counted], [key[1] for key in counted]
    return [
        *_turned(rows, 7),
        *(_numbers(begins), _numbers(sizes), b"".join(data)),
        *(_list(sessions), _list(apps), _numbers(list(counted.values()))),
        *_turned(heads, 5),
    ]


def _turned(rows: Sequence[Sequence[Any]], width: int) -> list[str]:
    return [_list(column) for column in zip(*rows, strict=True)] if rows else ["{}"] * width


def _list(values: Sequence[Value]) -> str:
    return f"{{{','.join(map(_element, values))}}}"


def _numbers(values: Sequence[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def _element(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)
