"""What a copy of a home consists of: folders, files and links, as its manifest says."""

import json
import os
import re
import zlib
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Final

from clawdforge.drivers.folders.tree_walk import Found, Limits
from clawdforge.drivers.folders.tree_write import is_plain_path

LIMITS: Final = Limits(entries=200_000, depth=64, seconds=60.0)
"""The agent may stand still while its home is copied, so that may not take long."""
# File times are coarse: a file that changed just before a copy may change again without showing it.
RACY_NANOSECONDS: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder (`d`), file (`f`) or link (`l`) below the home."""

    path: str
    kind: str
    mode: int = 0
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    object: str = ""  # of a file: what it holds, or the end of it
    before: tuple[tuple[str, int], ...] = ()  # objects with what comes before that, and their sizes
    crc: int = 0
    target: str = ""  # of a link

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """The objects of a file, in order, with their sizes."""
        return (*self.before, (self.object, self.last_size))

    @property
    def last_size(self) -> int:
        """Of its own object, which comes after those `before`."""
        return self.size - sum([size for _, size in self.before]) if self.before else self.size

    def is_unchanged(self, info: os.stat_result, taken_at: int) -> bool:
        """Whether this file's copy, taken at that time, is still what the file holds."""
        then = (self.size, self.mtime, self.ctime, self.inode)
        now = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
        return then == now and self.kind == "f" and not is_racy(info, taken_at)

    def is_sound(self) -> bool:
        """Whether it may be written: a manifest may come out of a backup that a stranger made."""
        texts, numbers = (self.path, self.object, self.target), (self.mode, self.size, self.mtime, self.crc)
        if not all(isinstance(text, str) for text in texts) or not all(type(n) is int for n in numbers):
            return False
        if not is_plain_path(self.path, LIMITS.depth + 1):
            return False
        if self.kind != "f":
            return self.kind in ("d", "l")
        if not all(isinstance(name, str) and type(size) is int for name, size in self.before):
            return False
        return all(is_object(name, size) for name, size in self.parts)


FIELDS: Final = tuple(each.name for each in fields(Entry))
READ_FIELDS: Final = attrgetter(*FIELDS)
ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
OBJECT: Final = re.compile(r"[0-9a-f]{12}-[0-9]{1,9}")


def is_object(name: str, size: int) -> bool:
    """Whether an object may have this name and size: a manifest may name any file of the machine."""
    return bool(OBJECT.fullmatch(name)) and type(size) is int and size >= 0


@dataclass(frozen=True, slots=True)
class Manifest:
    turn: int
    agent_session_id: str
    taken_at: int
    entries: tuple[Entry, ...] = ()
    fresh: dict[str, int] = field(default_factory=dict)
    """The objects made for this copy, each with the checksum of what comes before it in its file."""
    fresh_bytes: int = 0
    """The size of these objects."""

    @property
    def objects(self) -> dict[str, int]:
        return {name: size for entry in self.entries if entry.kind == "f" for name, size in entry.parts}

    def is_sound(self) -> bool:
        return all(entry.is_sound() for entry in self.entries)

    def encode(self) -> bytes:
        entries = [{n: v for n, v in zip(FIELDS, READ_FIELDS(e), strict=True) if v} for e in self.entries]
        body = {"turn": self.turn, "agent_session_id": self.agent_session_id, "taken_at": self.taken_at}
        body |= {"bytes": sum([e.size for e in self.entries if e.kind == "f"]), "entries": entries}
        text = ENCODER.encode(body).encode()
        return b"%d\n%s\n" % (zlib.crc32(text), text)


def is_racy(info: os.stat_result, at: int) -> bool:
    """Whether it changed so shortly before that time that a change since then may not show."""
    return info.st_ctime_ns >= at - RACY_NANOSECONDS


def decode_manifest(data: bytes) -> Manifest | None:
    """None for anything that is not a complete manifest."""
    try:
        body = _read_body(data)
        entries = tuple(map(_decode_entry, body["entries"]))
        return Manifest(body["turn"], body["agent_session_id"], body["taken_at"], entries)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def decode_objects(data: bytes) -> dict[str, int] | None:
    """Only the objects and their sizes, which takes a fifth of the time. They name what is deleted."""
    try:
        files = [entry for entry in _read_body(data)["entries"] if entry["kind"] == "f"]
        whole = {entry["object"]: entry.get("size", 0) for entry in files if "before" not in entry}
        grown = (_decode_entry(entry).parts for entry in files if "before" in entry)
        found = whole | {name: size for parts in grown for name, size in parts}
        return found if all(is_object(*one) for one in found.items()) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _decode_entry(fields: dict[str, Any]) -> Entry:
    if "before" not in fields:
        return Entry(**fields)
    return Entry(**{**fields, "before": tuple((name, size) for name, size in fields["before"])})


def _read_body(data: bytes) -> dict[str, Any]:
    head, _, text = data.partition(b"\n")
    text = text.removesuffix(b"\n")
    if not head.isdigit() or int(head) != zlib.crc32(text):
        raise ValueError("its checksum is another")
    body: dict[str, Any] = json.loads(text)
    return body


def entry_of(
    found: Found,
    name: str = "",
    size: int | None = None,
    before: tuple[tuple[str, int], ...] = (),
    crc: int = 0,
) -> Entry:
    """What a manifest says of something; of a file also how it was kept, in the object `name`."""
    info = found.info
    if found.is_folder:
        return Entry(found.path, "d", mode=info.st_mode & 0o777, mtime=info.st_mtime_ns)
    if not found.is_file:
        return Entry(found.path, "l", target=os.readlink(found.name, dir_fd=found.parent))
    return Entry(
        found.path,
        "f",
        mode=info.st_mode & 0o777,
        size=info.st_size if size is None else size,
        mtime=info.st_mtime_ns,
        ctime=info.st_ctime_ns,
        inode=info.st_ino,
        object=name,
        before=before,
        crc=crc,
    )
