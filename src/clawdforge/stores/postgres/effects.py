"""Which statements may wait until their batch is written, and what of the rows that are known they change.

Whatever is not named here is sent at once, in a transaction of the plain way.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from clawdforge.stores.postgres.heads import CAUGHT_UP, MOVED, RESTED
from clawdforge.stores.sqlite.queries import MINE, Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.unwritten import BLIND, GATHERED, READING

WAITING: Final = (
    *(
        "sessions",
        "events",
        "session_bytes",
        "app_bytes",
        "messages",
        "turns",
        "turn_files",
        "permissions",
    ),
    "session_heads",
    *("session_events", "usage_days", "app_changes", "change_counts", "webhook_deliveries"),
)
"""Tables that statements which wait may change, or that triggers of theirs may."""
NAMED: Final = re.compile(rf"(?<![.:\w])(?:{'|'.join(WAITING)})\b")
SET_SESSION: Final = re.compile(
    rf"UPDATE sessions SET (?P<columns>(?:\w+ = :\w+, )*\w+ = :\w+){re.escape(CAUGHT_UP)}"  # noqa: S608
    r" WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL"
)
SET_HEAD: Final = re.compile(
    rf"(?:{re.escape(RESTED)})?UPDATE session_heads SET (?P<columns>(?:\w+ = :\w+, )*\w+ = :\w+)"  # noqa: S608
    rf"(?P<moved>{re.escape(MOVED)})? WHERE session_id = {re.escape(MINE)}"
)
SET_FILE_BYTES: Final = re.compile(
    r"UPDATE session_bytes SET (?:\w+ = :\w+(?:, )?)+"
    r" WHERE session_id = :session AND app_name = :app AND \((?:\w+ <> :\w+(?: OR )?)+\)"
)
SET_TURN: Final = re.compile(
    rf"UPDATE turns SET [^()]+ WHERE session_id = {re.escape(MINE)} AND turn_index = :turn"  # noqa: S608
)
SET_PERMISSION: Final = re.compile(
    rf"UPDATE permissions SET [^()]+ WHERE session_id = {re.escape(MINE)} AND permission_id = :permission"  # noqa: S608
)
SET_PENDING: Final = f"UPDATE messages SET pending = :new_pending WHERE session_id = {MINE} AND seq = :seq"  # noqa: S608
HEAD: Final = frozenset({"head", "written"})
KNOWN: Final = 4096


class Kind(Enum):
    """What a statement does that may wait."""

    TURN_ADDED = "a turn is added"
    TURN_CHANGED = "a turn is changed"
    MESSAGE_ADDED = "a message is added"
    MESSAGE_CHANGED = "a message is no longer pending"
    SESSION_CHANGED = "columns of a session are set that nobody looks at to find other rows"
    HEAD_MOVED = "the same, but only how far its log goes"
    PERMISSION = "a permission is added or changed"
    AUDITED = "an entry of the audit is added"
    BYTES_ADDED = "bytes of events are counted"
    OTHER = "rows that no ordinary job reads"


class Waits(NamedTuple):
    """How a statement waits. With `must` it changes a row, or its job has to be run in the plain way."""

    kind: Kind
    tables: frozenset[str]
    must: bool


class Effects:
    """What is known about the statements of one dialect."""

    def __init__(self, queries: Queries) -> None:
        added = {
            queries.turn.insert: (Kind.TURN_ADDED, {"turns", "turn_files"}),
            queries.permission.insert: (Kind.PERMISSION, {"permissions"}),
            queries.audit.insert: (Kind.AUDITED, {"session_events"}),
            queries.delivery.insert: (Kind.OTHER, {"webhook_deliveries"}),
            queries.tx["add_usage"]: (Kind.OTHER, {"usage_days"}),
            queries.tx["put_changes"]: (Kind.OTHER, {"app_changes", "change_counts"}),
            queries.tx["add_event_bytes"]: (Kind.BYTES_ADDED, {"session_bytes", "app_bytes"}),
            queries.add_message: (
                Kind.MESSAGE_ADDED,
                {"messages", "sessions", "session_bytes", "app_bytes"},
            ),
            SET_PENDING: (Kind.MESSAGE_CHANGED, {"messages"}),
        }
        self._added = {
            sql: Waits(kind, frozenset(tables), must=False) for sql, (kind, tables) in added.items()
        }
        self.look_at = lru_cache(KNOWN)(self._look_at)

    def _look_at(self, sql: str) -> Waits | None:
        """None for a statement that does not wait."""
        found = self._added.get(sql)
        if found is not None:
            return found
        if SET_TURN.fullmatch(sql):
            return Waits(Kind.TURN_CHANGED, frozenset({"turns", "turn_files"}), must=True)
        if SET_PERMISSION.fullmatch(sql):
            return Waits(Kind.PERMISSION, frozenset({"permissions"}), must=True)
        if SET_FILE_BYTES.fullmatch(sql):
            return Waits(Kind.OTHER, frozenset({"session_bytes", "app_bytes"}), must=False)
        return _look_at_session(sql)


def _look_at_session(sql: str) -> Waits | None:
    found = SET_SESSION.fullmatch(sql) or SET_HEAD.fullmatch(sql)
    if found is None:
        return None
    names = {assignment.partition(" = ")[0] for assignment in found["columns"].split(", ")}
    if not names <= GATHERED:
        return None
    tables = frozenset({"sessions", "session_heads"})  # both, since what is known of them is one row
    is_head = "head" in names and names <= HEAD and bool(found.groupdict().get("moved"))
    return Waits(Kind.HEAD_MOVED if is_head else Kind.SESSION_CHANGED, tables, must=True)


@lru_cache(KNOWN)
def is_read(sql: str) -> bool:
    return READING.match(sql) is not None


@lru_cache(KNOWN)
def tables_of(sql: str) -> frozenset[str]:
    """Of those that may wait, the ones that a statement looks at; what it finds others by never waits."""
    return frozenset(NAMED.findall(BLIND.sub("", sql)))


def columns_of(params: Mapping[str, Value]) -> dict[str, Value]:
    """The columns of a session that a statement sets, by their names."""
    return {name: value for name, value in params.items() if name in GATHERED}
