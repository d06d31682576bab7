"""What spans apps: credentials, counts, the audit, and where work waits."""

from collections.abc import Sequence
from typing import Any, cast

from clawdforge.core.models.rows import (
    AppRow,
    AuditBase,
    AuditRow,
    FileRow,
    LinkRow,
    PauseRow,
    RunRow,
    TokenRow,
)
from clawdforge.core.models.usage import UsageQuery, UsageSum
from clawdforge.core.models.workspaces import Area
from clawdforge.core.ports.schedules import DueSchedule
from clawdforge.core.ports.webhooks import WaitingDeliveries
from clawdforge.stores.sqlite.audit import add_entry, read_base, read_head
from clawdforge.stores.sqlite.blobs import BlobRemoval
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.nodes import NodeChanges, NodeRows
from clawdforge.stores.sqlite.rows import Value, area_values, to_json
from clawdforge.stores.sqlite.search import from_cursor, to_cursor
from clawdforge.stores.sqlite.space import give_back
from clawdforge.stores.sqlite.usage import bind, read_page
from clawdforge.wire.admin import AppUsage
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.disk import SESSION_FORMS, DiskForm

MOST = 2**63 - 1


class SqliteSystemView(NodeRows):
    def apps(self) -> list[AppRow]:
        return [self._q.app.read(row) for row in self._rows("apps")]

    def app_row(self, app_name: str) -> AppRow | None:
        return next((self._q.app.read(row) for row in self._rows("app", app=app_name)), None)

    def secret_names(self) -> list[tuple[str, str]]:
        return self._pairs("secret_names")

    def pauses(self) -> list[PauseRow]:
        return [self._q.pause.read(row) for row in self._rows("pauses")]

    def budget_apps(self, after: str, limit: int) -> list[str]:
        return [str(app) for (app,) in self._rows("budget_apps", after=after, limit=limit)]

    def app_of_budget(self, budget_id: str) -> str | None:
        return next((str(app) for (app,) in self._rows("app_of_budget", budget=budget_id)), None)

    def lost_runs(self) -> list[tuple[str, str]]:
        return self._pairs("lost_runs")

    def token_by_hash(self, digest: bytes) -> TokenRow | None:
        return next((self._q.token.read(row) for row in self._rows("token_by_hash", hash=digest)), None)

    def tokens(self, app_name: str | None = None) -> list[TokenRow]:
        rows = self._rows("tokens") if app_name is None else self._rows("tokens_of_app", app=app_name)
        return [self._q.token.read(row) for row in rows]

    def link_by_hash(self, digest: bytes) -> LinkRow | None:
        return next((self._q.link.read(row) for row in self._rows("link_by_hash", hash=digest)), None)

    def login_round(self, holder: str) -> int:
        return next((int(number) for (number,) in self._rows("login_round", holder=holder)), 0)

    def count_open_sessions(self) -> int:
        return int(self._rows("count_open_sessions")[0][0])

    def session_counts(self) -> dict[str, int]:
        return {str(app): int(count) for app, count in self._rows("session_counts")}

    def open_session_counts(self) -> dict[str, tuple[int, int]]:
        return {str(app): (int(count), int(ttl)) for app, count, ttl in self._rows("open_session_counts")}

    def turns_of_apps(self) -> dict[str, int]:
        return {str(app): int(count) for app, count in self._rows("turns_of_apps")}

    def active_sessions(self) -> list[tuple[str, str]]:
        return self._pairs("active_sessions")

    def waiting_sessions(self) -> list[tuple[str, str]]:
        return self._pairs("waiting_sessions")

    def idle_sessions(self, before: Micros, limit: int) -> list[tuple[str, str]]:
        return self._pairs("idle_sessions", before=before, limit=limit)

    def closed_sessions(self, before: Micros, limit: int) -> list[tuple[str, str]]:
        return self._pairs("closed_sessions", before=before, limit=limit)

    def deleted_sessions(self, now: Micros, limit: int) -> list[tuple[str, str]]:
        return self._pairs("deleted_sessions", now=now, limit=limit)

    def unfinished_sessions(self, limit: int) -> list[tuple[str, str]]:
        return self._pairs("unfinished_sessions", limit=limit)

    def unpacked_sessions(self, after: str, limit: int) -> tuple[list[tuple[str, str]], str | None]:
        rows = self._rows("unpacked_sessions", after=after, limit=limit)
        found = [(str(app), str(session_id)) for app, session_id, is_packed in rows if not is_packed]
        return found, str(rows[-1][1]) if rows else None

    def apps_with_old_changes(self, before: Micros) -> list[str]:
        return [str(app) for (app,) in self._rows("apps_with_old_changes", before=before)]

    def apps_with_old_usage(self, before: str) -> list[str]:
        return [str(app) for (app,) in self._rows("apps_with_old_usage", before=before)]

    def waiting_deliveries(self) -> list[WaitingDeliveries]:
        return [
            WaitingDeliveries(str(app), str(endpoint), first, last)
            for app, endpoint, first, last in self._rows("waiting_deliveries")
        ]

    def endpoints_off(self, why: str) -> list[tuple[str, str]]:
        return self._pairs("endpoints_off", why=why)

    def due_schedules(self, now: Micros, limit: int) -> list[DueSchedule]:
        return [DueSchedule(*row) for row in self._rows("due_schedules", now=now, limit=limit)]

    def first_schedule(self) -> Micros | None:
        return next((int(at) for (at,) in self._rows("first_schedule")), None)

    def waiting_schedules(self, after: tuple[str, str], limit: int) -> list[DueSchedule]:
        rows = self._rows("waiting_schedules", last_app=after[0], last=after[1], limit=limit)
        return [DueSchedule(*row) for row in rows]

    def unindexed_apps(self) -> list[str]:
        return [str(app) for (app,) in self._rows("unindexed_apps")]

    def unmeasured_sessions(self, after: str, limit: int) -> list[tuple[str, str]]:
        return self._pairs("unmeasured_sessions", after=after, limit=limit)

    def unknown_sessions(self, session_ids: Sequence[str]) -> list[str]:
        ids = to_json(list(session_ids))
        return [str(found) for (found,) in self._rows("unknown_sessions", ids=ids)]

    def last_workspace(self, session_id: str) -> str | None:
        return next((str(cwd) for (cwd,) in self._rows("last_workspace", session=session_id)), None)

    def works_in(self, cwd: str, but: str) -> bool:
        return bool(self._rows("works_in", cwd=cwd, session=but))

    def unpublished_sessions(self, folder: str, after: str, limit: int) -> list[tuple[str, str]]:
        return self._pairs("unpublished_sessions", folder=folder, after=after, limit=limit)

    def sessions_in(self, area: Area) -> list[tuple[str, str]]:
        return self._pairs("sessions_in", **area_values(area))

    def named_folders(self, made: str) -> list[str]:
        rows = self._rows("named_folders", first=f"{made}/", last=f"{made}0")  # "0" comes after "/"
        return [str(cwd) for (cwd,) in rows]

    def place(self) -> str | None:
        return next((str(identity) for (identity,) in self._rows("place")), None)

    def disk_of_apps(self) -> dict[str, dict[DiskForm, int]]:
        rows = self._rows("disk_of_apps")
        return {str(app): dict(zip(DiskForm, sizes, strict=True)) for app, *sizes in rows}

    def disk_of_sessions(
        self, app_name: str, *, limit: int, cursor: str | None = None
    ) -> tuple[list[tuple[str, dict[DiskForm, int]]], str | None]:
        total, session_id = (MOST, "") if cursor is None else from_cursor(cursor, int, str)
        rows = self._rows("disk_of_sessions", app=app_name, total=total, session=session_id, limit=limit + 1)
        page = [(str(own), dict(zip(SESSION_FORMS, sizes, strict=True))) for _, own, *sizes in rows[:limit]]
        following = to_cursor(*rows[limit - 1][:2]) if len(rows) > limit else None
        return page, following

    def turn_counts(self) -> dict[str, int]:
        return {str(state): int(count) for state, count in self._rows("turn_counts")}

    def old_files(self, before: Micros, limit: int) -> list[FileRow]:
        return [self._q.file.read(row) for row in self._rows("old_files", before=before, limit=limit)]

    def audit(self, *, app_name: str | None = None, after: int = 0, limit: int = 100) -> list[AuditRow]:
        if app_name is None:
            rows = self._rows("audit", after=after, limit=limit)
        else:
            rows = self._rows("audit_of_app", app=app_name, after=after, limit=limit)
        return [self._q.audit.read(row) for row in rows]

    def audit_base(self) -> AuditBase:
        return read_base(self._db)

    def old_runs(self, before: Micros, *, after: int, limit: int) -> list[tuple[int, RunRow]]:
        """Records of runs from before then, with their places in the table, in that order."""
        rows = self._rows("old_runs", before=before, after=after, limit=limit)
        return [(int(place), self._q.run.read(row)) for place, *row in rows]

    def usage(self) -> list[Json]:
        names = tuple(AppUsage.model_fields)
        return [dict(zip(names, row, strict=True)) for row in self._rows("usage")]

    def usage_sums(self, query: UsageQuery) -> tuple[list[UsageSum], str | None]:
        return read_page(self._rows("usage_sums", **bind(query)), query)

    def _rows(self, name: str, **params: Value) -> list[tuple[Any, ...]]:
        return self._db.rows(self._q.system[name], params)

    def _pairs(self, name: str, **params: Value) -> list[tuple[str, str]]:
        return [(str(app), str(session)) for app, session in self._rows(name, **params)]


class SqliteSystemTx(SqliteSystemView, NodeChanges, BlobRemoval):
    def put_app(self, row: AppRow) -> None:
        self._db.run(self._q.system["put_app"], self._q.app.values(row))

    def put_secret(self, app_name: str, name: str, value: str) -> None:
        key: dict[str, Value] = {"app": app_name, "name": name}
        self._db.run(self._q.system["remove_secret"], key)
        if value:
            self._db.run(self._q.system["add_secret"], {**key, "value": value})

    def put_pause(self, row: PauseRow) -> None:
        self._db.run(self._q.system["put_pause"], self._q.pause.values(row))

    def remove_pause(self, app_name: str, agent: str) -> bool:
        key: dict[str, Value] = {"app": app_name, "agent": agent}
        return self._db.run(self._q.system["remove_pause"], key) > 0

    def move_to(self, place: str) -> None:
        self._db.run(self._q.system["forget_identities"], {})
        self._db.run(self._q.system["move_to"], {"place": place})

    def add_token(self, row: TokenRow) -> None:
        self._db.run(self._q.token.insert, self._q.token.values(row))

    def change_token(self, token_id: str, **changes: Any) -> bool:
        assignments, values = self._q.token.changes(changes)
        if not assignments:
            return False
        sql = f"UPDATE tokens SET {assignments} WHERE token_id = :token"  # noqa: S608 - names checked by the codec
        return self._db.run(sql, {"token": token_id, **values}) > 0

    def end_logins(self, holder: str) -> None:
        self._db.run(self._q.system["end_logins"], {"holder": holder})

    def remove_runs(self, before: Micros, limit: int) -> int:
        return self._db.run(self._q.system["remove_runs"], {"before": before, "limit": limit})

    def remove_deliveries(self, before: Micros, limit: int) -> int:
        return self._db.run(self._q.system["remove_deliveries"], {"before": before, "limit": limit})

    def remove_audit(self, through: int) -> AuditBase:
        """For an archive that has them: remove the entries up to one, which the chain then goes on from."""
        self._db.run(self._q.system["move_audit_base"], {"number": through})
        self._db.run(self._q.system["remove_audit"], {"number": through})
        return self.audit_base()

    def remove_old_runs(self, before: Micros, *, through: int, limit: int) -> int:
        """For an archive that has them: remove some; how many they were."""
        params: dict[str, Value] = {"before": before, "through": through, "limit": limit}
        return self._db.run(self._q.system["remove_old_runs"], params)

    def give_back_space(self) -> bool:
        return give_back(cast(Db, self._db).connection)

    def audit_system(self, app_name: str, event: str, at: Micros, details: Json) -> None:
        add_entry(self._db, read_head(self._db), app_name, None, event, at, details)
