"""Compares what is counted of the disk with what is there, and counts it anew."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from clawdforge.core.running.meter import find_workspace
from clawdforge.drivers.folders.sizes import SessionSizes
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.inspection import list_sessions
from clawdforge.stores.sqlite.stored_bytes import CountedBytes
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.upkeep.doctor import Finding, Level
from clawdforge.wire.disk import FILE_FORMS, SESSION_FORMS, DiskForm

BAD: Final[Level] = "bad"
FINE: Final[Level] = "ok"
ADVICE: Final = "stop the server and run `clawdforge doctor --repair`"


def check_stored(db: Db, data_dir: Path, *, repair: bool) -> Iterator[Finding]:
    """Rows are counted as they are written, so a difference is an error; folders only after a turn."""
    counts, sizes = CountedBytes(db), SessionSizes(data_dir)
    wrong_rows = wrong_files = 0
    for app, session_id in list_sessions(db):
        files = sizes.measure_now(session_id, find_workspace(SqliteView(db, app), session_id))
        with db.connection:  # one state of it: a server may write meanwhile
            counted = counts.bytes_counted(session_id)
            real = counts.bytes_real(session_id) | files
            if repair and counted != real:
                counts.count_bytes(app, session_id, real)
        wrong_rows += not _agree(counted, real, set(SESSION_FORMS) - set(FILE_FORMS))
        wrong_files += not _agree(counted, real, set(FILE_FORMS))
    if repair:
        counts.forget_bytes()
    with db.connection:
        wrong_apps = counts.wrong_apps()
        for app, sums in wrong_apps if repair else ():
            counts.count_app(app, sums)
    for count, what, level in (
        (wrong_rows, "sessions count other bytes than their rows have", BAD),
        (wrong_files, "sessions have folders that changed since they were measured", FINE),
        (len(wrong_apps), "apps count other bytes than they have", BAD),
    ):
        yield from _tell(count, what, level, repair=repair)
    if not (wrong_rows or wrong_files or wrong_apps):
        yield Finding("ok", "disk", "what is stored is counted right")


def _agree(
    counted: Mapping[DiskForm, int] | None, real: Mapping[DiskForm, int], forms: set[DiskForm]
) -> bool:
    return counted is not None and all(counted[form] == real[form] for form in forms)


def _tell(count: int, what: str, level: Level, *, repair: bool) -> Iterator[Finding]:
    if count and repair:
        yield Finding("ok", "repair", f"{count} {what}; counted anew")
    elif count:
        yield Finding(level, "disk", f"{count} {what}", "" if level == "ok" else ADVICE)
