"""The store's SQL statements, read once from the .sql files, with the records' columns filled in."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from clawdforge.core.models.blobs import BlobRow, PublicationRow
from clawdforge.core.models.budgets import BudgetRow, PurseRow, ReservationRow
from clawdforge.core.models.nodes import CodeRow, NodeRow, WishRow
from clawdforge.core.models.rows import (
    AppRow,
    AuditRow,
    FileRow,
    LinkRow,
    MessageRow,
    PauseRow,
    PermissionRow,
    PersonaRow,
    RunRow,
    SessionRow,
    TokenRow,
    TurnRow,
)
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.stores.sqlite.rows import ASSIGNMENTS, Codec
from clawdforge.stores.sqlite.session_lists import OF_APP, list_sessions
from clawdforge.wire.disk import SESSION_FORMS, DiskForm
from clawdforge.wire.session import Activity

SQL = Path(__file__).parent / "sql"
MINE = (
    "(SELECT session_id FROM sessions WHERE session_id = :session AND app_name = :app AND deleted_at IS NULL)"
)
DEAD = (
    "(SELECT session_id FROM sessions"
    " WHERE session_id = :session AND app_name = :app AND deleted_at IS NOT NULL)"
)


def _own(column: str) -> str:
    """A column of the session that a statement is about; looked up once, however many rows it walks."""
    return f"(SELECT {column} FROM sessions WHERE session_id = :session)"  # noqa: S608 - our own names


HIDDEN = f"messages.seq BETWEEN {_own('cut_from')} AND {_own('cut_to')}"
PRESENT = f"messages.cut = 0 AND NOT {HIDDEN}"
VISIBLE = f"{PRESENT} AND messages.archived = 0 AND +messages.seq > {_own('archived_to')}"
AFTER = f"max(:after, {_own('archived_to')})"
BEFORE = _own(
    "iif(min(:before - 1, last_message) BETWEEN cut_from AND cut_to, cut_from,"
    " min(:before, last_message + 1))"
)
TURN_CUT = (
    f"(turns.cut OR {_own('cut_from')} > 0 AND EXISTS (SELECT 1 FROM json_each({_own('cut_turns')})"  # noqa: S608 - our own names
    " WHERE turns.turn_index BETWEEN value ->> 0 AND value ->> 1))"
)
"""What a reader sees while the rows of a long change are still being marked (migration `history_in_sets`).

A unary plus keeps a condition away from the index: a page begins where `AFTER` says, and not at the start;
one that goes back begins where `BEFORE` says, below what was just cut from the end.
"""

PROMPT = (
    "CASE typeof(turns.prompt) WHEN 'blob' THEN coalesce((SELECT long_prompts.prompt FROM long_prompts"
    " WHERE long_prompts.session_id = turns.session_id AND long_prompts.turn_index = turns.turn_index), '')"
    " ELSE turns.prompt END"
)
"""A long one stands beside its row (migration `long_prompts`)."""

BELOW = (
    "(SELECT min(1, coalesce((SELECT min(seq) FROM events WHERE session_id = :target), 1), coalesce(("
    "SELECT first_seq FROM packs WHERE session_id = :target ORDER BY last_seq LIMIT 1), 1)))"
)
"""The lowest number in a log. What a session began with stands below 1, where no reader's cursor comes."""

UNSETTLED_TURNS = (
    "((SELECT count(*) FROM turns INDEXED BY turns_queued"
    " WHERE turns.session_id = sessions.session_id AND turns.state = 'queued')"
    " + (SELECT count(*) FROM turns INDEXED BY turns_one_active"
    " WHERE turns.session_id = sessions.session_id AND turns.state IN ('running', 'waiting')))"
)
LAST_CHANGE = (
    "max(coalesce((SELECT number FROM app_changes WHERE app_name = :app ORDER BY number DESC LIMIT 1), 0),"
    " coalesce((SELECT last FROM change_counts WHERE app_name = :app), 0))"
)
"""The last number that was given out in an app. Only where changes are forgotten it has to be noted."""

USAGE_NAMES = (
    "iif(:by_day, day, '') AS of_day, iif(:by_app, app_name, '') AS of_app,"
    " iif(:by_agent, agent, '') AS of_agent, iif(:by_model, model, '') AS of_model"
)


def _total(column: str) -> str:
    """total() cannot overflow, and is exact up to 2^53 - 1, where every sum stops."""
    return f"CAST(min(total({column}), 9007199254740991) AS INTEGER)"


USAGE_SUMS = ", ".join(
    f"sum({column})" if column.endswith(("cost", "usd")) else _total(column)
    for column in (
        *("turns", "input_tokens", "output_tokens", "cached_tokens", "cost_usd"),
        *("estimated_input", "estimated_output", "estimated_cost"),
    )
)
USAGE_AFTER = (
    "NOT :begun OR (of_day, of_app, of_agent, of_model) > (:last_day, :last_app, :last_agent, :last_model)"
)


CONDITIONS: Mapping[str, str] = {
    # A unary plus keeps the list's index away: a prefix finds few rows by the primary key.
    "app_by_prefix": "+app_name = :app",
    "prefix": "session_id >= :prefix AND session_id < :prefix || char(0x10ffff)",
    "label": "EXISTS (SELECT 1 FROM json_each(labels) WHERE value = :label)",
    "title": "title LIKE :q ESCAPE '\\'",
}
"""Parts of the lists of sessions."""


class Queries:
    """Codecs by record, statements by file and name, in the dialect of SQLite."""

    folder = SQL
    conditions = CONDITIONS
    prompt = PROMPT
    keeps_beside = True  # long prompts
    sessions = "sessions"  # the tables in which the columns of a session stand

    def __init__(self, *, packs_early: bool = True) -> None:
        self.packs_early = packs_early
        """Whether what a commit brings at once is a pack from the start."""
        self.app = Codec(AppRow, "apps", ["app_name"])
        self.pause = Codec(PauseRow, "pauses", ["app_name", "agent"])
        self.budget = Codec(BudgetRow, "budgets", ["app_name", "budget_id"])
        self.purse = Codec(PurseRow, "purses", ["app_name", "budget_id", "starts_at"])
        self.reservation = Codec(ReservationRow, "reservations", ["app_name", "holder_id", "turn_index"])
        self.token = Codec(TokenRow, "tokens", ["token_id", "app_name", "hash"])
        self.link = Codec(LinkRow, "share_links", ["share_id", "app_name", "session_id", "hash"])
        self.session = self._session()
        self.turn = Codec(TurnRow, "turns", ["session_id", "turn_index"])
        self.message = Codec(MessageRow, "messages", ["session_id", "seq"])
        self.permission = Codec(PermissionRow, "permissions", ["session_id", "permission_id"])
        self.file = Codec(FileRow, "files", ["app_name", "file_token"])
        self.persona = Codec(PersonaRow, "personas", ["app_name", "name"])
        self.run = Codec(RunRow, "runs", ["app_name", "run_id"])
        self.endpoint = Codec(EndpointRow, "webhook_endpoints", ["app_name", "endpoint_id"])
        self.delivery = Codec(DeliveryRow, "webhook_deliveries", ["app_name", "delivery_id", "endpoint_id"])
        self.schedule = Codec(ScheduleRow, "schedules", ["app_name", "schedule_id"])
        self.occurrence = Codec(
            OccurrenceRow, "schedule_occurrences", ["app_name", "schedule_id", "occurrence_id"]
        )
        self.audit = Codec(AuditRow, "session_events", ["number", "hash"])
        self.node = Codec(NodeRow, "members", ["node"])
        self.code = Codec(CodeRow, "login_codes", ["hash", "app_name", "token_id"])
        self.wish = Codec(WishRow, "wishes", ["wish_id", "app_name", "session_id", "node"])
        self.blob = Codec(BlobRow, "blobs", ["place", "app_name", "digest"])
        self.publication = Codec(PublicationRow, "publications", ["session_id"])
        names = (*self.message.names, "id")
        marks = ", ".join(f":{name}" for name in names)
        self.add_message = f"INSERT INTO messages ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - our own names
        fragments = self._fragments()
        self.view = load_statements(self.folder / "view.sql", fragments)
        self.tx = load_statements(self.folder / "tx.sql", fragments)
        self.session_read = self.tx.get("session_at_work", self.view["session"])
        """What a job reads of a session, with or without the columns of `Around`."""
        self.sets = load_statements(self.folder / "sets.sql", fragments)
        self.system = load_statements(self.folder / "system.sql", fragments)
        self.packs = load_statements(self.folder / "packs.sql", fragments)
        self.blobs = load_statements(self.folder / "blobs.sql", fragments)
        self.nodes = load_statements(SQL / "nodes.sql", fragments)
        self.inspection = self._inspection(fragments)
        self.set_session = lru_cache(ASSIGNMENTS)(self._set_session)
        """Statements that change one session; with `is_moved`, its log has moved at the time `at`."""

    def _set_session(self, columns: tuple[str, ...], is_moved: bool) -> tuple[str, ...]:
        moved = ", updated_at = CASE WHEN updated_at < :at THEN :at ELSE updated_at END" if is_moved else ""
        assignments = ", ".join(f"{name} = :{name}" for name in columns)
        where = "session_id = :session AND app_name = :app AND deleted_at IS NULL"
        return (f"UPDATE sessions SET {assignments}{moved} WHERE {where}",)  # noqa: S608 - our own names

    def list_sessions(self, where: Sequence[str], activity: Activity | None, *, is_later: bool) -> str:
        """Sessions for which all of `where` holds, those first that were updated last.

        `activity` is None where it is not asked. With `is_later`, a page that follows another.
        """
        return list_sessions(self.session.columns, where, activity, is_later=is_later)

    def _session(self) -> Codec[SessionRow]:
        return Codec(SessionRow, "sessions", ["app_name", "session_id"], never_null=["meta"])

    def replacing(self, codec: Codec[Any]) -> str:
        """The statement that adds a row, or puts it in the place of the one with the same key."""
        return codec.insert.replace("INSERT", "INSERT OR REPLACE", 1)

    def _inspection(self, fragments: dict[str, str]) -> dict[str, str]:
        """What only the doctor asks."""
        return load_statements(self.folder / "inspection.sql", fragments)

    def _fragments(self) -> dict[str, str]:
        codecs = {k: v for k, v in vars(self).items() if isinstance(v, Codec)}
        fragments = {name: codec.columns for name, codec in codecs.items()}
        fragments["sessions"] = self.sessions
        fragments |= {"mine": MINE, "dead": DEAD, "visible": VISIBLE, "present": PRESENT, "hidden": HIDDEN}
        fragments |= {"turn_cut": TURN_CUT, "cut_turns": _own("cut_turns"), "after": AFTER}
        fragments |= {"before": BEFORE, "archived_to": _own("archived_to")}
        fragments |= {"unsettled_turns": UNSETTLED_TURNS, "last_change": LAST_CHANGE}
        latest = list_sessions(
            "model, sessions.updated_at, session_id", [OF_APP, "deleted_at IS NULL"], None, is_later=False
        )
        fragments["latest_models"] = latest.replace(":limit", ":last")
        fragments |= self._tell_turn(TURN_CUT)
        fragments["message"] = (
            fragments["message"]
            .replace("messages.cut,", f"(messages.cut OR {HIDDEN}),")
            .replace("messages.archived,", f"(messages.archived OR messages.seq <= {_own('archived_to')}),")
        )
        fragments |= {f"{name}_plain": ", ".join(codec.names) for name, codec in codecs.items()}
        fragments["prompt"] = self.prompt
        fragments["turn_whole"] = _copy_columns(self.turn, prompt=f"{self.prompt} AS prompt")
        fragments["budget_marks"] = ", ".join(f":{name}" for name in self.budget.names)
        fragments["turn_copied"] = _copy_columns(
            self.turn,
            session_id=":target",
            prompt=self.prompt,
            key="NULL",
            fingerprint="NULL",
            context="1",
            first_seq="NULL",
            last_seq="NULL",
            cut="0",
            token_id="NULL",  # noqa: S106 - a column
            traceparent="NULL",
        )
        fragments["message_copied"] = _copy_columns(
            self.message, session_id=":target", pending="0", cut="0", archived="0"
        )
        fragments["message_told"] = _pair_columns(self.message)
        fragments["turn_told"] = _pair_columns(self.turn)
        fragments |= {"below": BELOW, "said_at": _iso("ts"), "queued_at": _iso("queued_at")}
        fragments |= {"app_forms": ", ".join(DiskForm), "session_forms": ", ".join(SESSION_FORMS)}
        fragments["app_values"] = ", ".join(f":{form}" for form in DiskForm)
        fragments["session_values"] = ", ".join(f":{form}" for form in SESSION_FORMS)
        fragments["session_excluded"] = ", ".join(f"{form} = excluded.{form}" for form in SESSION_FORMS)
        fragments |= {"usage_names": USAGE_NAMES, "usage_sums": USAGE_SUMS, "usage_after": USAGE_AFTER}
        return fragments

    def _tell_turn(self, cut: str) -> dict[str, str]:
        """The columns of a turn, and those of one whose prompt nobody wants to know."""
        columns = self.turn.columns.replace("turns.cut,", f"{cut},")
        return {
            "turn": columns.replace("turns.prompt,", f"{self.prompt},"),
            "turn_outline": columns.replace("turns.prompt,", "'',"),
        }


def load_statements(path: Path, fragments: dict[str, str]) -> dict[str, str]:
    """The blocks of a file that begin with `-- name: …`."""
    parts = re.split(r"^-- name: (\w+)$", path.read_text("utf-8"), flags=re.MULTILINE)
    return {
        name: text.strip().format_map(fragments) for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def _copy_columns(codec: "Codec[TurnRow] | Codec[MessageRow]", **replaced: str) -> str:
    return ", ".join(replaced.get(name, name) for name in codec.names)


def _pair_columns(codec: "Codec[TurnRow] | Codec[MessageRow]") -> str:
    """The arguments of json_object() that keep a row as it is."""
    return ", ".join(f"'{name}', {name}" for name in codec.names)


def _iso(column: str) -> str:
    """A time as events have it."""
    seconds = f"strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000000, 'unixepoch')"
    return f"{seconds} || printf('.%06dZ', {column} % 1000000)"
