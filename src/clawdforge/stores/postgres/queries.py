"""The store's statements in the dialect of Postgres."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from clawdforge.core.models.rows import SessionRow
from clawdforge.stores.postgres import heads
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Codec
from clawdforge.wire.session import Activity

SQL: Final = Path(__file__).parent / "sql"
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "personas": ("app_name", "name"),
    "publications": ("session_id",),
    "purses": ("app_name", "budget_id", "starts_at"),
    "reservations": ("app_name", "holder_id", "turn_index", "budget_id"),
}
"""The primary keys of tables in which a row may be put in the place of another."""


def _own(column: str) -> str:
    return f"(SELECT {column} FROM sessions WHERE session_id = :session)"  # noqa: S608 - our own names


HIDDEN: Final = f"messages.seq BETWEEN {_own('cut_from')} AND {_own('cut_to')}"
PRESENT: Final = f"messages.cut = 0 AND NOT {HIDDEN}"
VISIBLE: Final = f"{PRESENT} AND messages.archived = 0 AND messages.seq > {_own('archived_to')}"
TURN_CUT: Final = (
    f"(turns.cut = 1 OR {_own('cut_from')} > 0 AND EXISTS ("  # noqa: S608 - our own names
    f"SELECT 1 FROM json_array_elements({_own('cut_turns')}::json) AS span (value)"
    " WHERE turns.turn_index BETWEEN (value ->> 0)::bigint AND (value ->> 1)::bigint))"
)
BEFORE: Final = _own(
    "CASE WHEN least(:before - 1, last_message) BETWEEN cut_from AND cut_to THEN cut_from"
    " ELSE least(:before, last_message + 1) END"
)
BELOW: Final = (
    "(SELECT least(1, (SELECT min(seq) FROM events WHERE session_id = :target), ("
    "SELECT first_seq FROM packs WHERE session_id = :target ORDER BY last_seq LIMIT 1)))"
)
USAGE_NAMES: Final = ", ".join(
    f"CASE WHEN :by_{name} = 1 THEN {column} ELSE '' END AS of_{name}"
    for name, column in (("day", "day"), ("app", "app_name"), ("agent", "agent"), ("model", "model"))
)
USAGE_SUMS: Final = ", ".join(
    f"sum({column})"
    if column.endswith(("cost", "usd"))
    else f"least(coalesce(sum({column}), 0), 9007199254740991)::bigint"
    for column in (
        *("turns", "input_tokens", "output_tokens", "cached_tokens", "cost_usd"),
        *("estimated_input", "estimated_output", "estimated_cost"),
    )
)
USAGE_AFTER: Final = (
    ":begun = 0 OR (of_day, of_app, of_agent, of_model) > (:last_day, :last_app, :last_agent, :last_model)"
)


class PgQueries(Queries):
    """The same names as those of SQLite; where the rows are the same, so is what a statement answers."""

    folder = SQL
    conditions: Mapping[str, str] = {
        "app_by_prefix": "app_name = :app",
        "prefix": "session_id >= :prefix AND session_id < :prefix || chr(1114111)",
        # Compared as JSON has it: a text with what Postgres cannot hold is never taken out of it.
        "label": "EXISTS (SELECT 1 FROM json_array_elements(labels::json) AS each (value)"
        " WHERE value::text = to_json(:label)::text)",
        "title": "title ILIKE :q ESCAPE '\\'",
    }

    prompt = "turns.prompt"
    keeps_beside = False  # Postgres does so by itself
    sessions = heads.SESSIONS

    def __init__(self) -> None:
        super().__init__(packs_early=False)  # all events of a batch are one statement

    def _set_session(self, columns: tuple[str, ...], is_moved: bool) -> tuple[str, ...]:
        return heads.set_session(columns, is_moved=is_moved)

    def list_sessions(self, where: Sequence[str], activity: Activity | None, *, is_later: bool) -> str:
        return heads.list_sessions(self.session.columns, where, activity, is_later=is_later)

    def _session(self) -> Codec[SessionRow]:
        return heads.SessionCodec()

    def replacing(self, codec: Codec[Any]) -> str:
        keys = KEYS[codec.table]
        changes = ", ".join(f"{name} = excluded.{name}" for name in codec.names if name not in keys)
        return f"{codec.insert} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"

    def _inspection(self, fragments: dict[str, str]) -> dict[str, str]:
        del fragments
        return {}  # the doctor looks into the file of SQLite alone

    def _fragments(self) -> dict[str, str]:
        fragments = super()._fragments()
        fragments |= {"visible": VISIBLE, "present": PRESENT, "hidden": HIDDEN, "turn_cut": TURN_CUT}
        fragments |= {"before": BEFORE, "after": f"greatest(:after, {_own('archived_to')})", "below": BELOW}
        fragments |= {"usage_names": USAGE_NAMES, "usage_sums": USAGE_SUMS, "usage_after": USAGE_AFTER}
        fragments |= self._tell_turn(TURN_CUT)
        fragments["message"] = self.message.columns.replace(
            "messages.cut,", f"(messages.cut = 1 OR {HIDDEN}),"
        ).replace("messages.archived,", f"(messages.archived = 1 OR messages.seq <= {_own('archived_to')}),")
        return fragments
