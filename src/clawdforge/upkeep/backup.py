"""Backs up a data folder into one file, even beside a running server, and restores it into an empty folder.

The database is copied first, as one consistent state with everything acknowledged until then. Then come the
files that it names, the workspaces as they are, and the agents' memories: copies of homes at turn boundaries,
never a home in use. What vanished in between is left out, and the restored database does not name it.
"""

import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clawdforge import __version__
from clawdforge.core.model import Clock
from clawdforge.core.rules import memory
from clawdforge.drivers.folders.file_copy import delete_tree, sync_file_system
from clawdforge.drivers.folders.home_copies import decode_manifest
from clawdforge.stores.sqlite import snapshot
from clawdforge.stores.uploads import FOLDER as FILES
from clawdforge.stores.uploads import PENDING
from clawdforge.upkeep.archive import Progress, UpkeepError, Writer, create_archive, ignore_progress, unpack
from clawdforge.wire.base import Json
from clawdforge.wire.errors import StoreUnavailable

SECRETS: Final = ("local.token", "admin.token")
COPIES: Final = "copies"
WORKSPACES: Final = "workspaces"


@dataclass(frozen=True, slots=True)
class Summary:
    sessions: int
    files: int
    bytes: int


def backup(data_dir: Path, target: Path, clock: Clock, report: Progress = ignore_progress) -> Summary:
    """Works with and without a running server. `report` is called with the number of bytes read so far."""
    source, target = data_dir.resolve(), target.absolute()
    if not (source / snapshot.FILE).is_file():
        raise UpkeepError(f"{source} has no database; give the server's folder with --data-dir")
    if target.exists():
        raise UpkeepError(f"{target} exists; choose another name, or remove it")
    if target.resolve().is_relative_to(source):
        raise UpkeepError(f"a backup must not be inside the data folder; choose a path outside {source}")
    try:
        with tempfile.TemporaryDirectory(prefix=".clawdforge-", dir=target.parent) as folder:
            return _write_archive(source, target, Path(folder) / snapshot.FILE, clock, report)
    except (OSError, StoreUnavailable) as error:
        raise UpkeepError(f"the backup could not be made: {error}") from error


def _write_archive(source: Path, target: Path, database: Path, clock: Clock, report: Progress) -> Summary:
    made_at = clock.now()
    snapshot.copy_database(source / snapshot.FILE, database)
    sessions, files = snapshot.read_sessions(database), snapshot.read_files(database)
    with create_archive(target, report) as archive:
        memories = {one.session_id: _add_copies(archive, source, one) for one in sessions}
        lost = [one.file_token for one in files if not _add_upload(archive, source, Path(one.path))]
        for name in SECRETS:
            archive.add_file(name, source / name)
        archive.add_tree(WORKSPACES, source / WORKSPACES)
        archive.add_file(snapshot.FILE, database)
        plans = {one.session_id: _plan(one, memories[one.session_id]) for one in sessions}
        archive.finish(
            {
                "version": __version__,
                "made_at": made_at,
                "data_dir": str(source),
                "schema": snapshot.read_schema_version(database),
                "plans": {session_id: plan for session_id, plan in plans.items() if plan is not None},
                "lost_files": lost,
            }
        )
    return Summary(len(sessions), len(files) - len(lost), target.stat().st_size)


def _add_upload(archive: Writer, source: Path, path: Path) -> bool:
    """Look in both folders: the file may have moved since the database was copied."""
    inner = path.relative_to(source / FILES)
    name = f"{FILES}/{inner}"
    return archive.add_file(name, path) or archive.add_file(name, source / FILES / PENDING / inner)


def _add_copies(archive: Writer, source: Path, session: snapshot.SessionEntry) -> dict[int, str]:
    """Add the complete copies of turns that ended before the backup. Returns the agent's session by turn."""
    folder = source / COPIES / session.session_id
    kept: dict[int, str] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem.zfill(12)):
        try:
            manifest = decode_manifest(path.read_bytes())
        except OSError:
            continue
        if manifest is None or manifest.turn > session.last_ended:
            continue
        name = f"{COPIES}/{session.session_id}"
        objects = [(f"{name}/files/{one}", folder / "files" / one) for one in manifest.objects]
        whole = all(inner in archive or archive.add_file(inner, file) for inner, file in objects)
        if whole and archive.add_file(f"{name}/{path.name}", path):
            kept[manifest.turn] = manifest.agent_session_id
    return kept


def _plan(session: snapshot.SessionEntry, copies: dict[int, str]) -> str | None:
    """How the agent gets its memory back after a restore, which has copies of homes but no homes."""
    if session.context_plan != memory.LOAD:
        return None
    fitting = [turn for turn, agent in copies.items() if agent == session.agent_session_id]
    last = max(fitting, default=0)
    return memory.plan_restore(last) if last and last >= session.last_answered else memory.TRANSCRIPT


def restore(source: Path, data_dir: Path, report: Progress = ignore_progress) -> Json:
    """Restore into a folder that is empty or missing: all or nothing. Returns the facts of the backup."""
    target = data_dir.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UpkeepError(f"{target} is not empty; choose another folder with --data-dir, or move it away")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}"
    temporary.mkdir(mode=0o700)
    try:
        facts = unpack(source, temporary, report)
        database = temporary / snapshot.FILE
        if broken := snapshot.check_integrity(database):
            raise UpkeepError(f"the database in {source} is damaged: {broken[0]}; use another backup")
        snapshot.rewrite_paths(
            database, Path(facts["data_dir"]), target.resolve(), facts["plans"], facts["lost_files"]
        )
        sync_file_system(temporary)
        temporary.replace(target)
        sync_file_system(target.parent)
    except (OSError, StoreUnavailable, KeyError) as error:
        raise UpkeepError(f"{source} could not be restored: {error}") from error
    finally:
        if temporary.exists():
            delete_tree(temporary)
    return facts
