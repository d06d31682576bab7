"""Reads every session of a data folder, compares it with its log, and makes anew what the log can tell."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from clawdforge.core.model import Clock, MessageRow, TurnRow
from clawdforge.core.ports import View
from clawdforge.core.rules.audit_chain import ChainCheck
from clawdforge.core.rules.interrupted import project_turn
from clawdforge.drivers.folders.homes import LOST
from clawdforge.stores.lock import FolderLock, FolderTaken
from clawdforge.stores.sqlite import migrations, snapshot
from clawdforge.stores.sqlite.connection import DAMAGE, Db, open_reader, open_writer
from clawdforge.stores.sqlite.inspection import Inspection
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.system import SqliteSystemView
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.stores.uploads import find_places
from clawdforge.upkeep.doctor import Finding
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role
from clawdforge.wire.turn import TurnState

PAGE: Final = 500
MANY: Final = 1 << 62
RESTORE: Final = "restore a backup, or delete the session"
RESTORE_ALL: Final = "stop the server and restore a backup with `clawdforge restore`"
REPAIR: Final = "stop the server and run `clawdforge doctor --repair`"

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
    count, inspection = 0, Inspection(db)
    for app, session_id in inspection.sessions():
        count += 1
        try:
            for text in _check_log(inspection, SqliteView(db, app), session_id):
                yield Finding("bad", "sessions", f"{session_id}: {text}", RESTORE)
            wrong = list(_find_wrong(inspection, SqliteView(db, app), session_id))
            if wrong and repair:
                _repair(db, SqliteTx(db, app, clock), session_id, wrong)
            yield from (_told(session_id, one, repair=repair) for one in wrong)
            yield from _check_counts(inspection, session_id, repair=repair)
        except BROKEN as error:
            yield Finding("bad", "sessions", f"{session_id} cannot be read whole: {error}", RESTORE)
    yield Finding("ok", "sessions", f"{count} were read")


def _check_log(inspection: Inspection, view: View, session_id: str) -> Iterator[str]:
    """The events are numbered without a gap, and every turn that began here has one end."""
    session = view.session(session_id)
    count, first, last = inspection.span_of_log(session_id)
    if session is not None and (count, first or 1, last or 0) != (session.head, 1, session.head):
        yield f"its log has {count} events from {first} to {last}, but should have {session.head}"
    ends = Counter(inspection.turns_of(session_id, EventType.TURN_ENDED))
    for turn in view.turns(session_id, limit=MANY):
        began_here = turn.first_seq is not None or turn.state is not TurnState.ENDED
        wanted = int(turn.state is TurnState.ENDED) if began_here else ends[turn.turn_index]
        if ends[turn.turn_index] != wanted or wanted > 1:
            yield f"turn {turn.turn_index} is {turn.state} and has {ends[turn.turn_index]} ends"


def _find_wrong(inspection: Inspection, view: View, session_id: str) -> Iterator[tuple[MessageRow, str]]:
    """Messages that are not what the log says, with what it says. What a fork began with is in none."""
    turns = {turn.turn_index: turn for turn in view.turns(session_id, limit=MANY)}
    posts = _read_posts(inspection, session_id)
    for show in ("all", "cut"):
        for message in view.messages(session_id, limit=MANY, show=show):
            turn = turns.get(message.turn) if message.turn else None
            wanted = posts.get(message.seq) if turn is None else _words_of(view, turn, message)
            if wanted is not None and wanted != message.content:
                yield message, wanted


def _words_of(view: View, turn: TurnRow, message: MessageRow) -> str | None:
    if turn.first_seq is None or message.is_summary:
        return None
    if message.role == Role.USER:
        return turn.prompt
    said = project_turn(view, turn).make_message(turn.session_id, turn.turn_index, message.ts)
    return None if said is None else said.content


def _read_posts(inspection: Inspection, session_id: str) -> dict[int, str]:
    """The texts of posted messages by their seq. Version 0.3 did not put them into the log."""
    posts = inspection.data_of(session_id, EventType.MESSAGE_POSTED)
    events: list[dict[str, Any]] = [orjson.loads(data) for data in posts]
    return {event["message"]: event["content"] for event in events if "content" in event}


def _repair(db: Db, tx: SqliteTx, session_id: str, wrong: list[tuple[MessageRow, str]]) -> None:
    with db.connection:
        for message, wanted in wrong:
            tx.change_messages(session_id, [message.seq], content=wanted)


def _told(session_id: str, wrong: tuple[MessageRow, str], *, repair: bool) -> Finding:
    text = f"{session_id}: message {wrong[0].seq} is not what the log says"
    return (
        Finding("ok", "repair", f"{text}; made anew") if repair else Finding("bad", "sessions", text, REPAIR)
    )


def _check_counts(inspection: Inspection, session_id: str, *, repair: bool) -> Iterator[Finding]:
    visible, last = inspection.count(session_id)
    found = inspection.counted(session_id)
    if found is None or (found[0] == visible and found[1] >= last):
        return
    text = f"{session_id}: {found[0]} messages are counted, and there are {visible}"
    if not repair:
        yield Finding("bad", "sessions", text, REPAIR)
        return
    inspection.set_counted(session_id, visible, last)
    yield Finding("ok", "repair", f"{text}; counted anew")


def _check_audit(db: Db) -> Iterator[Finding]:
    chain, view, after = ChainCheck(), SqliteSystemView(db), 0
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
    known = {one.session_id for one in snapshot.read_sessions(data_dir / snapshot.FILE)}
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
