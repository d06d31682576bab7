"""Reads every session of a data folder, compares it with its log, and makes anew what the log can tell."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from clawdforge.core.clock import Clock
from clawdforge.core.ports import View
from clawdforge.core.rules.audit_chain import ChainCheck
from clawdforge.drivers.folders.homes import LOST
from clawdforge.folder_lock import FolderLock, FolderTaken
from clawdforge.stores.sqlite import migrations, snapshot
from clawdforge.stores.sqlite.connection import DAMAGE, Db, open_reader, open_writer
from clawdforge.stores.sqlite.inspection import Counts, Inspection, list_sessions
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.system import SqliteSystemView
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.stores.uploads import find_places
from clawdforge.upkeep.doctor import REPAIR, Finding
from clawdforge.upkeep.purse_check import check_purses
from clawdforge.upkeep.rebuilding import Rebuilding, Wrong
from clawdforge.upkeep.stored import check_stored
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import TurnState

PAGE: Final = 500
MANY: Final = 1 << 62
RESTORE: Final = "restore a backup, or delete the session"
RESTORE_ALL: Final = "stop the server and restore a backup with `clawdforge restore`"

BROKEN: Final = (*DAMAGE, StoreUnavailable, ValueError, TypeError, KeyError)
"""What reading a damaged file, or a row that holds anything, may raise."""


def examine_deep(data_dir: Path, clock: Clock, *, repair: bool = False) -> Iterator[Finding]:
    """What is wrong inside the database and its folders. With `repair`, what can be is put right."""
    path = data_dir / snapshot.FILE
    if not path.exists():
        return
    yield from _survive("database", _examine(data_dir, path, clock, repair=repair))


def _examine(data_dir: Path, path: Path, clock: Clock, *, repair: bool) -> Iterator[Finding]:
    if snapshot.read_schema_version(path) != len(migrations.list_migrations()):
        yield Finding(
            "warn", "sessions", "not read: the database is of another version", "start the server once"
        )
        return
    with contextlib.ExitStack() as stack:
        if repair:
            try:
                stack.callback(FolderLock.acquire(data_dir, "", 0).release)
            except FolderTaken as error:
                yield Finding("bad", "repair", error.message, "stop the server first")
                return
        db = Db(open_writer(path) if repair else open_reader(path), Queries())
        stack.callback(db.connection.close)
        yield from _survive("sessions", _check_sessions(db, clock, repair=repair))
        yield from _survive("budgets", check_purses(db, clock, repair=repair))
        yield from _survive("disk", check_stored(db, data_dir, repair=repair))
        yield from _survive("audit", _check_audit(db))
        yield from _survive("files", _check_files(data_dir))
    yield from _survive("folder", _check_folders(data_dir))


def _survive(about: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """What cannot be read is a finding too, and does not keep the rest from being read."""
    try:
        yield from findings
    except BROKEN as error:
        text = f"the database cannot be read to its end: {error}"
        yield Finding("bad", about, text, RESTORE_ALL)


def _check_sessions(db: Db, clock: Clock, *, repair: bool) -> Iterator[Finding]:
    count = 0
    for app, session_id in list_sessions(db):
        count += 1
        inspection = Inspection(db, app)
        try:
            with db.connection:  # one state of it: a server may write meanwhile
                tx = SqliteTx(db, app, clock)
                found = list(_check_session(db, inspection, tx, session_id, repair=repair))
                tx.write_changes()
        except BROKEN as error:
            found = [Finding("bad", "sessions", f"{session_id} cannot be read whole: {error}", RESTORE)]
        yield from found
    yield Finding("ok", "sessions", f"{count} were read")


def _check_session(
    db: Db, inspection: Inspection, tx: SqliteTx, session_id: str, *, repair: bool
) -> Iterator[Finding]:
    """Nothing is made anew from a log that is not whole itself."""
    torn = list(_check_log(inspection, tx, session_id))
    if torn:
        yield from (Finding("bad", "sessions", f"{session_id}: {text}", RESTORE) for text in torn)
        return
    rebuilding = Rebuilding(inspection, tx, session_id)
    told = rebuilding.told.brought
    if told is not None and inspection.count_brought(session_id) != (told, 1 - told if told else None):
        text = f"{session_id}: its log does not have all of the {told} events that it began with"
        yield Finding("bad", "sessions", text, RESTORE)
        return
    # Answers are read by the turns that gave them, so turns come first.
    for find in (
        rebuilding.find_wrong_turns,
        rebuilding.find_wrong_order,
        rebuilding.find_wrong_messages,
    ):
        wrong = list(find())
        if repair:
            with db.connection:
                for one in wrong:
                    rebuilding.mend(one)
        yield from (_told(session_id, one, repair=repair) for one in wrong)
    yield from _check_counts(inspection, rebuilding, session_id, repair=repair)


def _check_log(inspection: Inspection, view: View, session_id: str) -> Iterator[str]:
    """Events are numbered without a gap, each is in one place, and a turn that began here has one end."""
    session = view.session(session_id)
    count, first, last = 0, None, None
    queued: set[int | None] = set()
    ends: Counter[int | None] = Counter()
    for event in inspection.read_log(session_id):
        count, first, last = count + 1, event.seq if first is None else first, event.seq
        if event.type == EventType.TURN_QUEUED:
            queued.add(event.turn)
        elif event.type == EventType.TURN_ENDED:
            ends[event.turn] += 1
    if session is not None and (count, first or 1, last or 0) != (session.head, 1, session.head):
        yield f"its log has {count} events from {first} to {last}, but should have {session.head}"
    yield from inspection.find_wrong_packs(session_id)
    for turn in view.turns(session_id, limit=MANY):
        index, count = turn.turn_index, ends[turn.turn_index]
        if index in queued and (count > 1 or (turn.state is TurnState.ENDED and not count)):
            yield f"turn {index} is {turn.state} and has {count} ends"


def _told(session_id: str, wrong: Wrong, *, repair: bool) -> Finding:
    text = f"{session_id}: {wrong.text}"
    if not wrong.can_be_mended:
        return Finding("bad", "sessions", text, RESTORE)
    return (
        Finding("ok", "repair", f"{text}; made anew") if repair else Finding("bad", "sessions", text, REPAIR)
    )


def _check_counts(
    inspection: Inspection, rebuilding: Rebuilding, session_id: str, *, repair: bool
) -> Iterator[Finding]:
    found, wanted = inspection.counted(session_id), rebuilding.count()
    if found is None or found == replace(wanted, last_message=max(found.last_message, wanted.last_message)):
        return
    text = f"{session_id}: it counts {_list(found)}, and has {_list(wanted)}"
    if not repair:
        yield Finding("bad", "sessions", text, REPAIR)
        return
    inspection.set_counted(session_id, wanted)
    yield Finding("ok", "repair", f"{text}; counted anew")


def _list(counts: Counts) -> str:
    messages = f"{counts.messages} messages up to {counts.last_message}"
    return f"{messages}, {counts.turns} turns up to {counts.last_turn}"


def _check_audit(db: Db) -> Iterator[Finding]:
    view, after = SqliteSystemView(db), 0
    chain = ChainCheck(base=view.audit_base())
    while rows := view.audit(after=after, limit=PAGE):
        verdict = chain.check(rows)
        if verdict is not None:
            yield Finding("bad", "audit", f"{verdict.reason}", "compare it with a backup")
            return
        after = rows[-1].number
    yield Finding("ok", "audit", f"{chain.finish().entries} entries, all intact")


def _check_files(data_dir: Path) -> Iterator[Finding]:
    for file in snapshot.read_files(data_dir / snapshot.FILE):
        places = find_places(data_dir, file.path)
        if not any(there.is_file() and there.stat().st_size == file.size for there in places):
            yield Finding(
                "bad",
                "files",
                f"the upload {file.file_token[:8]}… is missing or cut short",
                "upload it again",
            )


def _check_folders(data_dir: Path) -> Iterator[Finding]:
    """Folders that no session knows, those that were set aside, and copies from before upgrades."""
    known = snapshot.read_ids(data_dir / snapshot.FILE)
    for name in ("homes", "copies"):
        folder = data_dir / name
        there = {path.name for path in folder.iterdir() if path.name[0] != "."} if folder.is_dir() else set()
        if unknown := there - known:
            text = f"{len(unknown)} folders in {folder} belong to no session of this database"
            yield Finding("warn", "folder", text, "put the right database back, or remove them")
    lost = data_dir / LOST
    if lost.is_dir() and (count := len(list(lost.iterdir()))):
        text = f"{lost} holds what {count} sessions left that the database did not know"
        yield Finding("warn", "folder", text, "look at it, then remove it")
    for kept in data_dir.glob(f"{snapshot.FILE}{migrations.BEFORE}*"):
        yield Finding("ok", "database", f"{kept.name} is a copy from before an upgrade; it may be removed")
