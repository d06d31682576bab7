"""The database as a file: copy it while it is in use, check it, read what it names, move it elsewhere."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw

from clawdforge.disk import sync_folder
from clawdforge.folder import make_private_file
from clawdforge.stores.sqlite.connection import DAMAGE, DISK_ERRORS, open_reader
from clawdforge.stores.sqlite.moved import fit_to_folder
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import StoreUnavailable

FILE: Final = "forge.db"
STEP_BYTES: Final = 4 << 20
RESET_BUG: Final = ((3, 7, 0), (3, 51, 2))
"""The SQLite versions in which two writers can lose what one of them wrote."""

SESSIONS: Final = """
SELECT session_id, agent_session_id, context_plan,
       (SELECT coalesce(max(turn_index), 0) FROM turns WHERE turns.session_id = sessions.session_id
           AND state = 'ended'),
       (SELECT coalesce(max(turn_index), 0) FROM turns WHERE turns.session_id = sessions.session_id
           AND outcome = 'completed' AND cut = 0)
FROM sessions WHERE deleted_at IS NULL ORDER BY session_id
"""
MOVE_FILES: Final = (
    "UPDATE files SET path = :new || substr(path, length(:old) + 1) WHERE instr(path, :old || '/') = 1"
)
MOVE_SESSIONS: Final = """
UPDATE sessions SET cwd = :new || substr(cwd, length(:old) + 1)
WHERE own_cwd = 1 AND instr(cwd, :old || '/') = 1
"""
HAS_CHANGES: Final = "SELECT 1 FROM sqlite_master WHERE name = 'change_counts'"
FORGET_CHANGES: Final = """
INSERT INTO change_counts (app_name, last, forgotten)
SELECT app_name, :far + coalesce(last, 0), :far + coalesce(last, 0)
FROM (SELECT app_name FROM apps UNION SELECT app_name FROM sessions)
LEFT JOIN (SELECT app_name, max(number) AS last FROM app_changes GROUP BY app_name) USING (app_name)
WHERE true
ON CONFLICT (app_name) DO UPDATE SET
    last = max(excluded.last, last + :far), forgotten = max(excluded.last, last + :far)
"""
FAR: Final = 2**32
"""What nobody has counted since the backup was made: every reader's cursor lies before it."""


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A session with its last ended and its last answered turn, which a copy of its home has to match."""

    session_id: str
    agent_session_id: str | None
    context_plan: str
    last_ended: int
    last_answered: int


@dataclass(frozen=True, slots=True)
class FileEntry:
    file_token: str
    path: str
    size: int


def copy_database(source: Path, target: Path) -> None:
    """Copy one consistent state of a database in use. The copy appears when it is complete."""
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    make_private_file(part)
    try:
        with contextlib.closing(open_reader(source)) as reader, _open(part) as copy:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the snapshot begins here
            pages = STEP_BYTES // int(reader.pragma("page_size"))
            with copy.backup("main", reader, "main") as steps:
                while not steps.done:
                    steps.step(pages)
            reader.execute("ROLLBACK")
        handle = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        part.replace(target)
        sync_folder(target.parent)
    except DISK_ERRORS as error:
        raise StoreUnavailable(f"the copy could not be made: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def check_integrity(path: Path) -> list[str]:
    """The defects of the file; an empty list if it is sound."""
    try:
        with contextlib.closing(open_reader(path)) as reader:
            found: list[Any] = reader.execute("PRAGMA integrity_check").fetchall()
    except DISK_ERRORS as error:
        return [str(error)]
    return [str(row[0]) for row in found if row[0] != "ok"]


def read_sessions(path: Path) -> list[SessionEntry]:
    return [SessionEntry(*row) for row in _rows(path, SESSIONS)]


def read_ids(path: Path) -> set[str]:
    """Of all sessions, with those that nobody sees: what they have in folders is the sweeper's to remove."""
    return {str(row[0]) for row in _rows(path, "SELECT session_id FROM sessions")}


def read_files(path: Path) -> list[FileEntry]:
    return [FileEntry(*row) for row in _rows(path, "SELECT file_token, path, size FROM files")]


def read_own_folders(path: Path) -> list[str]:
    """The workspaces that the server made."""
    return [str(row[0]) for row in _rows(path, "SELECT DISTINCT cwd FROM sessions WHERE own_cwd = 1")]


def last_write(path: Path) -> Micros:
    """When a session was last changed, by the server's clock at that time."""
    return int(_rows(path, "SELECT coalesce(max(updated_at), 0) FROM sessions")[0][0])


def read_pauses(path: Path) -> list[tuple[str, str, str | None]]:
    """App, agent and reason of what the operator has paused; empty names mean all of them."""
    if not _rows(path, "SELECT 1 FROM sqlite_schema WHERE name = 'pauses'"):
        return []  # no server of this version has opened it yet
    rows = _rows(path, "SELECT app_name, agent, reason FROM pauses ORDER BY app_name, agent")
    return [(app, agent, reason) for app, agent, reason in rows]


def read_schema_version(path: Path) -> int:
    return int(_rows(path, "PRAGMA user_version")[0][0])


def rewrite_paths(path: Path, old: Path, new: Path, plans: Mapping[str, str], lost: Sequence[str]) -> None:
    """Fit a copy that is not in use to another folder: new paths, new context plans, no lost files."""
    with _change(path) as connection, connection:
        where = {"old": str(old), "new": str(new)}
        connection.execute(MOVE_FILES, where)
        connection.execute(MOVE_SESSIONS, where)
        connection.executemany(
            "UPDATE sessions SET context_plan = ? WHERE session_id = ?",
            [(plan, session_id) for session_id, plan in plans.items()],
        )
        connection.executemany("DELETE FROM files WHERE file_token = ?", [(token,) for token in lost])
        if connection.execute(HAS_CHANGES).fetchone():  # a copy may be of an older version
            connection.execute(FORGET_CHANGES, {"far": FAR})


def fit_copy(path: Path, data_dir: Path) -> None:
    """Have a copy that is not in use name the places of the folder that it was made of, where that is now.

    The server does so at its next start. Before that, the database still names where the folder was.
    """
    with _change(path) as connection:
        fit_to_folder(connection, data_dir)


def sqlite_version() -> tuple[str, bool]:
    """The version in use, and whether it is free of the bug in which two writers lose writes."""
    text = apsw.sqlite_lib_version()
    parts = tuple(int(part) for part in text.split("."))
    first, last = RESET_BUG
    return text, not first <= parts <= last


def _rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    try:
        with contextlib.closing(open_reader(path)) as reader:
            return list(reader.execute(sql))
    except DAMAGE as error:
        raise StoreUnavailable(f"{path} cannot be read: {error}") from error


@contextlib.contextmanager
def _change(path: Path) -> Iterator[apsw.Connection]:
    try:
        with _open(path) as connection:
            yield connection
    except DAMAGE as error:
        raise StoreUnavailable(f"{path} cannot be changed: {error}") from error


@contextlib.contextmanager
def _open(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        yield connection
    finally:
        connection.close()
