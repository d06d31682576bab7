"""Backs up a data folder into one file, even beside a running server, and restores it into an empty folder.

The database is copied first, as one consistent state with everything acknowledged until then. Then come the
files that it names, the workspaces as they are, and the agents' memories: copies of homes at turn boundaries,
never a home in use. What vanished in between is left out, and the restored database does not name it.
"""

import contextlib
import secrets
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clawdforge import __version__
from clawdforge.core.clock import Clock
from clawdforge.core.rules import memory
from clawdforge.disk import sync_file_system
from clawdforge.drivers.folders.home_manifest import decode_manifest
from clawdforge.drivers.folders.tree_removal import delete_tree
from clawdforge.stores.sqlite import snapshot
from clawdforge.stores.uploads import FOLDER as FILES
from clawdforge.stores.uploads import find_places
from clawdforge.upkeep.archive import (
    Progress,
    TreeLimits,
    UpkeepError,
    Writer,
    create_archive,
    ignore_progress,
)
from clawdforge.upkeep.unpacking import UnpackLimits, count_needed, unpack
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import StoreUnavailable

SECRETS: Final = ("local.token", "admin.token")
COPIES: Final = "copies"
WORKSPACES: Final = "workspaces"
WORKSPACE_BYTES: Final = 16 << 30


@dataclass(frozen=True, slots=True)
class Summary:
    """What a backup holds. `left_out` is what of workspaces it does not, and why, for the first thousand.

    `needs_files` is how many files a restore must allow.
    """

    sessions: int
    files: int
    bytes: int
    left_out: Mapping[str, str]
    left_out_count: int
    needs_files: int


def backup(
    data_dir: Path,
    target: Path,
    clock: Clock,
    report: Progress = ignore_progress,
    max_workspace_bytes: int = WORKSPACE_BYTES,
) -> Summary:
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
            database = Path(folder) / snapshot.FILE
            limits = TreeLimits(max_workspace_bytes)
            return _write_archive(source, target, database, clock.now(), limits, report)
    except (OSError, StoreUnavailable) as error:
        raise UpkeepError(f"the backup could not be made: {error}") from error


def _write_archive(
    source: Path, target: Path, database: Path, made_at: Micros, limits: TreeLimits, report: Progress
) -> Summary:
    snapshot.copy_database(source / snapshot.FILE, database)
    snapshot.fit_copy(database, source)
    if stranger := _find_stranger(database, source):
        raise UpkeepError(
            f"the database names {stranger[:200]!r} as its own, which is not in {source}, so that no backup"
            " of it could be restored; put a database that belongs to the folder there, or delete that upload"
            " or session"
        )
    sessions, files = snapshot.read_sessions(database), snapshot.read_files(database)
    with create_archive(target, report) as archive:
        memories = {one.session_id: _add_copies(archive, source, one) for one in sessions}
        lost = [one.file_token for one in files if not _add_upload(archive, source, one.path)]
        for name in SECRETS:
            archive.add_file(name, source / name)
        for name in _list_names(source / WORKSPACES):  # one by one: what is wrong in one is not in another
            archive.add_tree(f"{WORKSPACES}/{name}", source / WORKSPACES / name, limits)
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
    return Summary(
        sessions=len(sessions),
        files=len(files) - len(lost),
        bytes=target.stat().st_size,
        left_out=archive.left_out,
        left_out_count=archive.left_out_count,
        needs_files=count_needed(archive.entries, archive.list_bytes),
    )


def _list_names(folder: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(path.name for path in folder.iterdir())
    return []


def _add_upload(archive: Writer, source: Path, path: str) -> bool:
    """Look in both folders: the file may have moved since the database was copied."""
    kept, pending = find_places(source, path)
    name = str(kept.relative_to(source))
    return archive.add_file(name, kept) or archive.add_file(name, pending)


def _add_copies(archive: Writer, source: Path, session: snapshot.SessionEntry) -> dict[int, str]:
    """Add the complete copies of turns that ended before the backup. Returns the agent's session by turn."""
    folder = source / COPIES / session.session_id
    kept: dict[int, str] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem.zfill(12)):
        try:
            manifest = decode_manifest(path.read_bytes())
        except OSError:
            continue
        if manifest is None or not manifest.is_sound() or manifest.turn > session.last_ended:
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


def restore(
    source: Path,
    data_dir: Path,
    report: Progress = ignore_progress,
    limits: UnpackLimits | None = None,
) -> Json:
    """Restore into a folder that is empty or missing: all or nothing. Returns the facts of the backup."""
    target = data_dir.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UpkeepError(f"{target} is not empty; choose another folder with --data-dir, or move it away")
    with _make_parents(target):
        temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}"
        temporary.mkdir(mode=0o700)
        try:
            facts = unpack(source, temporary, _belongs, limits or UnpackLimits(), report)
            database = temporary / snapshot.FILE
            if broken := snapshot.check_integrity(database):
                raise UpkeepError(f"the database in {source} is damaged: {broken[0]}; use another backup")
            old, plans, lost = _read_changes(facts)
            if stranger := _find_stranger(database, old):
                raise UpkeepError(
                    f"{source} is refused, nothing was restored: its database names {stranger[:200]!r}"
                )
            snapshot.rewrite_paths(database, old, target.resolve(), plans, lost)
            sync_file_system(temporary)
            temporary.replace(target)
            sync_file_system(target.parent)
        except (OSError, StoreUnavailable, ValueError) as error:
            raise UpkeepError(f"{source} could not be restored: {error}") from error
        finally:
            delete_tree(temporary)
    return facts


@contextlib.contextmanager
def _make_parents(target: Path) -> Iterator[None]:
    """Make the folders above, and remove them again if nothing comes of it."""
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except UpkeepError:
        with contextlib.suppress(OSError):
            for folder in missing:
                folder.rmdir()
        raise


def _belongs(parts: tuple[str, ...], kind: bytes) -> bool:
    """Where a backup has what: links only in what agents made, and nothing beside its own folders."""
    if kind == tarfile.SYMTYPE:
        return parts[0] == WORKSPACES and len(parts) > 2
    if kind == tarfile.DIRTYPE:
        return parts[0] in (WORKSPACES, COPIES, FILES)
    is_plain = kind in (tarfile.REGTYPE, tarfile.AREGTYPE)
    at_top = (snapshot.FILE, *SECRETS)
    return is_plain and (parts[0] in (COPIES, FILES, WORKSPACES) if len(parts) > 1 else parts[0] in at_top)


def _read_changes(facts: Json) -> tuple[Path, dict[str, str], list[str]]:
    """What a restored database is to be fitted with, if the archive's list has it in the right form."""
    old: Any = facts.get("data_dir")
    plans: Any = facts.get("plans")
    lost: Any = facts.get("lost_files")
    fits = isinstance(old, str) and isinstance(plans, dict) and isinstance(lost, list)
    if fits and all(isinstance(text, str) for text in (*plans.values(), *lost)):
        return Path(old), plans, lost
    raise ValueError("its list of files is damaged; use another backup")


def _find_stranger(database: Path, data_dir: Path) -> str | None:
    """What the database says are the server's own files must be that: agents are given them."""
    places = [(one.path, data_dir / FILES) for one in snapshot.read_files(database)]
    places += [(cwd, data_dir / WORKSPACES) for cwd in snapshot.read_own_folders(database)]
    for path, folder in places:
        if not Path(path).is_relative_to(folder) or ".." in Path(path).parts:
            return path
    return None
