"""Files that agents only add to, as to a log of a conversation: a copy keeps what is new, in another object.

A long memory would else be written anew after every turn, and everybody who writes to the same disk waits for
that. So that there are never many objects, one of less than a mebibyte is written again, with what came after
it, as soon as that is half as long: each is then at least twice as long as the next one, and a byte of the
memory is written about ten times until it lies in an object that stays.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from clawdforge.drivers.folders.home_manifest import Entry

PART_BYTES: Final = 1 << 20
BLOCK: Final = 1 << 12  # less than this takes as much of a disk
PIECE: Final = 1 << 20
SAMPLE: Final = 1 << 12


class Beginning(NamedTuple):
    """What a file has in common with its copy: the objects that hold it, its size, and its checksum."""

    parts: tuple[tuple[str, int], ...] = ()
    size: int = 0
    crc: int = 0


def find_beginning(old: Entry | None, source: int, size: int, files: str) -> Beginning:
    """As much of the file's last copy as can be shared, which is nothing unless all of it is still there."""
    if old is None or old.kind != "f" or size < old.size:
        return Beginning()
    parts = list(old.parts)
    start = old.size
    while parts and parts[-1][1] < min(PART_BYTES, 2 * max(BLOCK, size - start)):
        start -= parts.pop()[1]
    if not parts or not _looks_alike(source, f"{files}/{parts[0][0]}"):
        return Beginning()
    crc = _crc_between(source, 0, start, 0)
    is_same = _crc_between(source, start, old.size, crc) == old.crc
    return Beginning(tuple(parts), start, crc) if is_same else Beginning()


def _looks_alike(source: int, first: str) -> bool:
    """Most files that are written anew, such as databases, differ in their first bytes: no more is read."""
    try:
        with open(first, "rb", buffering=0) as file:  # noqa: PTH123 -- after every turn, and faster
            return file.read(SAMPLE) == os.pread(source, SAMPLE, 0)
    except FileNotFoundError:
        return False


def _crc_between(source: int, start: int, end: int, crc: int) -> int:
    while start < end and (piece := os.pread(source, min(PIECE, end - start), start)):
        crc, start = zlib.crc32(piece, crc), start + len(piece)
    return crc


@contextmanager
def open_part(files: str, name: str) -> Iterator[int]:
    """A descriptor of one object: a file may have hundreds, so never of all of them at once."""
    part = os.open(f"{files}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield part
    finally:
        os.close(part)


def read_crc(part: int, crc: int = 0) -> int:
    """The checksum of it behind something that has `crc`."""
    return _crc_between(part, 0, os.fstat(part).st_size, crc)


def is_whole(files: str, entry: Entry) -> bool:
    """Whether its objects hold what the file did."""
    crc = 0
    try:
        for name, size in entry.parts:
            with open_part(files, name) as part:
                if os.fstat(part).st_size != size:
                    return False
                crc = read_crc(part, crc)
    except FileNotFoundError:
        return False
    return crc == entry.crc


def has_sizes(files: str, entry: Entry) -> bool:
    """Whether its objects are there and as long as they should be: a loss of power may shorten them."""
    try:
        return all(os.stat(f"{files}/{name}").st_size == size for name, size in entry.parts)  # noqa: PTH116
    except FileNotFoundError:
        return False
