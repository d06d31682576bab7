"""A disk as power loss leaves it: a log of system calls, replayed to what is certain and what may be.

A write is certain once a sync of its file has returned, a name once a sync of its folder has. Everything else
may be there, may be missing, or may be there in part, in any combination.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from proofs.kit.tracer import every_spelling

TRACED = ",".join(
    (
        "pwrite64,pwritev,write,writev,sendto,sendmsg,fdatasync,fsync,syncfs,ftruncate,openat,fallocate",
        every_spelling("unlink"),
        every_spelling("rename"),
    )
)
STRACE = ("-y", "-xx", "-s", "4000000", "-e", f"trace={TRACED}")
SECTOR = 512

NAMING = ("openat", "unlink", "rename")  # calls whose arguments are names, not open files

LINE = re.compile(rb"(\d+) +(\w+)\((.*?)(?: <unfinished \.\.\.>|\) += (-?\d+).*)$", re.DOTALL)
RESUMED = re.compile(rb"(\d+) +<\.\.\. (\w+) resumed>.*\) += (-?\d+)")
TARGET = re.compile(rb"\d+<([^>]*)>(?:, )?")
STRING = re.compile(rb'"([^"]*)"')
NUMBER = re.compile(rb"-?\d+")


def unhex(text: bytes) -> bytes:
    return bytes.fromhex(text.replace(b"\\x", b"").decode())


@dataclass(frozen=True, slots=True)
class Call:
    """One system call: when it began, and whether and when it came back."""

    name: str
    target: str
    data: bytes
    number: int
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """`begin` is the issue of a call, otherwise its return; `ok` says whether that was a success."""

    call: Call
    begin: bool
    ok: bool = True


def read_log(path: Path) -> Iterator[Step]:
    """The calls of all threads in the order in which they began and came back."""
    waiting: dict[bytes, Call] = {}
    for line in path.read_bytes().split(b"\n"):
        found = LINE.match(line)
        if found:
            call = _call(found[2].decode(), found[3])
            yield Step(call, begin=True)
            if found[4] is None:
                waiting[found[1]] = call
            else:
                yield Step(call, begin=False, ok=int(found[4]) >= 0)
            continue
        back = RESUMED.match(line)
        if back and back[1] in waiting:
            call = waiting.pop(back[1])
            yield Step(call, begin=False, ok=int(back[3]) >= 0)


def _call(name: str, text: bytes) -> Call:
    if name.startswith(NAMING):
        strings = [unhex(part) for part in STRING.findall(text)]
        flags = text.rpartition(b'"')[2].decode()
        return Call(name, strings[0].decode(), strings[-1], 0, flags)
    head = TARGET.match(text)
    target = unhex(head[1]).decode(errors="replace") if head and b"\\x" in head[1] else ""
    rest = text[head.end() :] if head else text
    if rest.find(b'"...') >= 0:
        raise ValueError("strace cut a string short")
    data = b"".join(unhex(part) for part in STRING.findall(rest))
    tail = rest.rpartition(b'"')[2]
    numbers = [int(number) for number in NUMBER.findall(tail)]
    return Call(name, target, data, numbers[-1] if numbers else 0)


@dataclass
class File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes (offset, bytes) and truncations (size, None) that no sync has covered."""

    def apply(self, writes: list[tuple[int, bytes | None]]) -> bytearray:
        image = bytearray(self.durable)
        for offset, data in writes:
            _put(image, offset, data)
        return image


def _put(image: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del image[offset:]
        image.extend(bytes(offset - len(image)))
    else:
        image.extend(bytes(max(0, offset - len(image))))
        image[offset : offset + len(data)] = data


class Disk:
    """The files of one folder."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder = str(folder)
        self._paths = {str(folder / name): name for name in names}
        self.files: dict[str, File] = {}
        self._names: set[str] = set()  # certainly in the folder
        self._changes: list[tuple[str, bool]] = []  # names that came (True) or went, not yet certain
        self._covered: dict[int, tuple[File, int]] = {}
        self.syncs = 0
        self.failures = 0

    def step(self, step: Step) -> None:
        call = step.call
        if not step.ok:
            self._forget_unsynced(call)
            return
        name = self._paths.get(call.target)
        if call.target == self._folder and call.name in ("fsync", "fdatasync", "syncfs"):
            if not step.begin:
                self._sync_folder()
            return
        if name is None:
            return
        if call.name == "openat" and "O_CREAT" in call.flags and not step.begin and name not in self.files:
            self.files[name] = File()
            self._changes.append((name, True))
        elif call.name.startswith("unlink") and not step.begin:
            self.files.pop(name, None)
            self._changes.append((name, False))
        elif call.name.startswith("rename"):
            raise ValueError(f"{name} is renamed: the simulator does not know that")
        elif call.name in ("pwrite64", "pwritev") and step.begin:
            self._file(name).pending.append((call.number, call.data))
        elif call.name == "ftruncate" and step.begin:
            self._file(name).pending.append((call.number, None))
        elif call.name in ("fsync", "fdatasync"):
            file = self._file(name)
            if step.begin:
                self._covered[id(call)] = (file, len(file.pending))
            else:
                file, count = self._covered.pop(id(call))
                file.durable = file.apply(file.pending[:count])
                del file.pending[:count]
                self.syncs += 1

    def _forget_unsynced(self, call: Call) -> None:
        """After a failed sync the kernel calls its pages clean: what they held is written by no later one."""
        if id(call) in self._covered:
            file, count = self._covered.pop(id(call))
            del file.pending[:count]
            self.failures += 1

    def state(self, chance: random.Random, kind: str) -> dict[str, bytes]:
        """One content of the folder that a power cut at this moment may leave."""
        keep = {"durable": 0.0, "all": 1.0}.get(kind, chance.choice((0.1, 0.3, 0.5, 0.7, 0.9)))
        names = set(self._names)
        for name, came in self._changes:
            if chance.random() < keep:
                (names.add if came else names.discard)(name)
        found = {}
        for name in names:
            file = self.files.get(name)
            if file is not None:
                found[name] = bytes(file.apply(_some(file.pending, chance, keep, torn=kind == "torn")))
        return found

    def _file(self, name: str) -> File:
        return self.files.setdefault(name, File())

    def _sync_folder(self) -> None:
        for name, came in self._changes:
            (self._names.add if came else self._names.discard)(name)
        self._changes.clear()


def _some(
    writes: list[tuple[int, bytes | None]], chance: random.Random, keep: float, *, torn: bool
) -> list[tuple[int, bytes | None]]:
    kept: list[tuple[int, bytes | None]] = []
    for offset, data in writes:
        if not torn or data is None:
            if chance.random() < keep:
                kept.append((offset, data))
            continue
        unit = chance.choice((SECTOR, 4096))  # pieces as the disk writes them, at its own borders
        start = 0
        while start < len(data):
            end = min(len(data), start + unit - (offset + start) % unit)
            if chance.random() < keep:
                kept.append((offset + start, data[start:end]))
            start = end
    return kept
