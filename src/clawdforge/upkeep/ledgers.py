"""Puts old entries of the audit, and old records of one-shot runs, away into a file, and checks such files.

Only when the file is whole and on stable storage are the entries removed, a slice at a time. The database
keeps the number and the hash of the last one that went, so that its chain goes on from there, and each file
the hash that it goes on from: together they are still one chain. After a crash an entry may be in both.
"""

import contextlib
import gzip
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

from clawdforge.core.models.rows import AuditBase, AuditRow
from clawdforge.core.rules.audit_chain import ChainCheck
from clawdforge.disk import sync_folder
from clawdforge.folder_lock import FolderLock
from clawdforge.stores.sqlite import migrations, snapshot
from clawdforge.stores.sqlite.connection import DISK_ERRORS, Db, open_writer
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.system import SqliteSystemTx
from clawdforge.upkeep.archive import UpkeepError
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import ForgeAPIError

Kind = Literal["audit", "runs"]
FORMAT: Final = 1
PAGE: Final = 200
AT_ONCE: Final = 1000
MAX_LINE: Final = 64 << 20
UNREADABLE: Final = (OSError, EOFError, ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class Archived:
    """What a file holds; `head` is the hash of the last entry of an audit."""

    kind: Kind
    count: int
    head: str | None = None


def put_away(kind: Kind, data_dir: Path, file: Path, before: Micros) -> Archived:
    """Write what is older to a new file, then remove it. No server may run on the folder."""
    path = data_dir / snapshot.FILE
    if not path.exists():
        raise UpkeepError(f"there is no database in {data_dir}; choose the folder with --data-dir")
    if file.exists():
        raise UpkeepError(f"{file} exists already; choose another name")
    if snapshot.read_schema_version(path) != len(migrations.list_migrations()):
        raise UpkeepError("the database is of another version; start the server once, then stop it")
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(FolderLock.acquire(data_dir, "", os.getpid()).release)
            db = Db(open_writer(path), Queries())
            stack.callback(db.connection.close)
            ledger = _Audit(db, before) if kind == "audit" else _Runs(db, before)
            found = _write(kind, ledger, file)
            ledger.remove()
        except ForgeAPIError as error:
            raise UpkeepError(error.message) from error
        except DISK_ERRORS as error:
            raise UpkeepError(f"the database cannot be used: {error}; {file} has what was written") from error
        except OSError as error:
            raise UpkeepError(f"{file} cannot be written: {error.strerror}; nothing was removed") from error
    return found


def verify(file: Path) -> Archived:
    """What a file holds, if it is as it was written."""
    try:
        with gzip.open(file, "rb") as source:
            return _read(source)
    except UNREADABLE as error:
        raise UpkeepError(f"{file} is not whole, or was changed: {error}") from error


class _Audit:
    """The entries from the first on, up to the first that is not old enough."""

    def __init__(self, db: Db, before: Micros) -> None:
        self._db = db
        self._before = before
        self._tx = SqliteSystemTx(db)
        self.base = self._tx.audit_base()
        self.last = self.base

    @property
    def header(self) -> Json:
        return {"after": self.base.number, "prev": self.base.hash}

    def rows(self) -> Iterator[Json]:
        chain = ChainCheck(base=self.base)
        while page := self._tx.audit(after=self.last.number, limit=PAGE):
            old = list(takewhile(lambda row: row.at < self._before, page))
            verdict = chain.check(old)
            if verdict is not None:
                raise UpkeepError(f"the audit is damaged, so nothing of it is put away: {verdict.reason}")
            yield from (asdict(row) for row in old)
            if old:
                self.last = AuditBase(old[-1].number, old[-1].hash)
            if len(old) < len(page):
                return

    def remove(self) -> None:
        while self.base.number < self.last.number:
            with self._db.connection:
                self.base = self._tx.remove_audit(min(self.base.number + AT_ONCE, self.last.number))

    @property
    def head(self) -> str | None:
        return self.last.hash


class _Runs:
    """The records of runs that are older, in the order in which they came."""

    def __init__(self, db: Db, before: Micros) -> None:
        self._db = db
        self._before = before
        self._tx = SqliteSystemTx(db)
        self._last = 0

    header: Final[Json] = {}
    head: Final = None

    def rows(self) -> Iterator[Json]:
        while page := self._tx.old_runs(self._before, after=self._last, limit=PAGE):
            yield from (asdict(row) for _, row in page)
            self._last = page[-1][0]

    def remove(self) -> None:
        removed = 1
        while removed:
            with self._db.connection:
                removed = self._tx.remove_old_runs(self._before, through=self._last, limit=AT_ONCE)


def _write(kind: Kind, ledger: _Audit | _Runs, file: Path) -> Archived:
    """The file appears under its name when it is complete and on stable storage."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    digest, count = hashlib.sha256(), 0
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
                _add(packed, digest, {"kind": kind, "format": FORMAT, **ledger.header})
                for row in ledger.rows():
                    _add(packed, digest, row)
                    count += 1
                end = {"count": count, "head": ledger.head, "sha256": digest.hexdigest()}
                packed.write(json.dumps(end).encode() + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        if not count:
            raise UpkeepError("nothing is older than that; no file was written")
        os.link(part, file)  # not a rename: what somebody else has put there meanwhile stays
    finally:
        part.unlink(missing_ok=True)
    sync_folder(file.resolve().parent)
    return Archived(kind, count, ledger.head)


def _add(packed: gzip.GzipFile, digest: "hashlib._Hash", value: Json) -> None:
    line = json.dumps(value).encode() + b"\n"
    digest.update(line)
    packed.write(line)


def _read(source: gzip.GzipFile) -> Archived:
    digest = hashlib.sha256()
    header = line = source.readline(MAX_LINE)
    begin = json.loads(header)
    kind: Kind = begin["kind"]
    if kind not in ("audit", "runs") or begin["format"] != FORMAT:
        raise ValueError("it is of another kind")
    chain = ChainCheck(base=AuditBase(begin["after"], begin["prev"])) if kind == "audit" else None
    count = -1
    while following := source.readline(MAX_LINE):
        digest.update(line)
        if count >= 0:
            _check_row(chain, json.loads(line))
        count += 1
        line = following
    end: dict[str, Any] = json.loads(line)
    if (end["count"], end["sha256"]) != (count, digest.hexdigest()):
        raise ValueError("its checksum does not fit")
    if chain is not None and chain.finish().head != end["head"]:
        raise ValueError("its last hash does not fit")
    return Archived(kind, count, end["head"])


def _check_row(chain: ChainCheck | None, row: Json) -> None:
    verdict = None if chain is None else chain.check([AuditRow(**row)])
    if verdict is not None:
        raise ValueError(verdict.reason)
