"""Takes a tree apart into pieces that are named by their digests, and puts one together from them.

A file is cut every mebibyte, so that of one that grows only the last piece is new. The tree itself is
described by a manifest, which is cut in the same way.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from clawdforge.core.ports.shared_files import Piece
from clawdforge.drivers.folders.home_manifest import LIMITS
from clawdforge.drivers.folders.tree_write import BadPath, TreeWriter, finish, split_path

PIECE_BYTES: Final = 1 << 20
BATCH_BYTES: Final = 4 << 20
BATCH_PIECES: Final = 256
WANTED: Final = 16
"""So many pieces are fetched at once: none of them is large."""
MOST_MANIFEST: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Item:
    """A folder (`d`), a file (`f`) or a link (`l`)."""

    path: str
    kind: str
    mode: int = 0
    mtime: int = 0
    size: int = 0
    pieces: tuple[str, ...] = ()
    target: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """An item that is to be read: what it holds comes from `read`, unless `key` was seen the last time."""

    item: Item
    key: tuple[object, ...] = ()
    read: Callable[[], Iterator[bytes]] | None = None


Known = dict[tuple[object, ...], tuple[str, ...]]
"""The pieces of files that were read before, by what tells whether a file is still the same."""


class PieceReading:
    """Reads the items of a tree one after another; `check` is called when all are read."""

    def __init__(self, sources: Iterator[Source], known: Known, check: Callable[[], None]) -> None:
        self.manifest: tuple[str, ...] = ()
        self.digests: frozenset[str] = frozenset()
        self.known: Known = {}
        """What there is to know the next time."""
        self._sources = sources
        self._check = check
        self._before = known
        self._items: list[Item] = []
        self._all: set[str] = set()
        self._batches = self._read_all()

    def read(self) -> Sequence[Piece]:
        return next(self._batches, ())

    def close(self) -> None:
        self._batches.close()

    def _read_all(self) -> Generator[list[Piece], None, None]:
        batch: list[Piece] = []
        size = 0
        for source in self._sources:
            pieces = self._before.get(source.key) if source.key else ()
            if pieces is None and source.read is not None:
                found: list[str] = []
                for data in source.read():
                    batch.append(Piece(hashlib.sha256(data).hexdigest(), data))
                    found.append(batch[-1].digest)
                    size += len(data)
                    if size >= BATCH_BYTES or len(batch) >= BATCH_PIECES:
                        yield batch
                        batch, size = [], 0
                pieces = tuple(found)
            pieces = pieces or ()
            if source.key:
                self.known[source.key] = pieces
            self._all.update(pieces)
            self._items.append(replace(source.item, pieces=pieces))
        self._check()
        text = zlib.compress(json.dumps([_encode(item) for item in self._items]).encode(), 1)
        cut = list(cut_bytes(text))
        batch += cut
        self.manifest = tuple(piece.digest for piece in cut)
        self.digests = frozenset(self._all.union(self.manifest))
        yield batch


def cut_bytes(data: bytes) -> Iterator[Piece]:
    for start in range(0, len(data), PIECE_BYTES):
        part = data[start : start + PIECE_BYTES]
        yield Piece(hashlib.sha256(part).hexdigest(), part)


def read_descriptor(fd: int, size: int) -> Iterator[bytes]:
    """A file that is open, as it is while it is read."""
    start = 0
    while start < size and (data := os.pread(fd, min(PIECE_BYTES, size - start), start)):
        yield data
        start += len(data)


def decode_manifest(data: bytes) -> list[Item]:
    """ValueError for anything that is no manifest: it comes from a database that others may write to."""
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(data, MOST_MANIFEST)
        if not inflate.eof:
            raise ValueError("the list of files is too long or not whole")
        items = [_decode(fields) for fields in json.loads(text)]
    except (zlib.error, KeyError, TypeError, RecursionError) as error:
        raise ValueError("the list of files cannot be read") from error
    for item in items:
        try:
            split_path(item.path, LIMITS.depth + 1)
        except BadPath as error:
            raise ValueError(str(error)) from error
    return items


class PieceWriting:
    """Writes a tree into a new folder. What is in it counts only when somebody has taken it from there."""

    def __init__(
        self, folder: Path, root: int, items: Sequence[Item], remove: Callable[[Path], None]
    ) -> None:
        self.folder = folder
        self._root = root
        self._remove = remove
        self._writer = TreeWriter(root, LIMITS.depth + 1)
        self._folders = [item for item in items if item.kind == "d"]
        self._links = [item for item in items if item.kind == "l"]
        self._files = iter([item for item in items if item.kind == "f"])
        self._wanted: list[tuple[Item, int]] = []
        for item in self._folders:
            self._writer.add_folder(item.path)
        self._fill()

    def find_wanted(self) -> Sequence[str]:
        return [item.pieces[index] for item, index in self._wanted[:WANTED]]

    def give(self, pieces: Mapping[str, bytes]) -> None:
        given, self._wanted = self._wanted[:WANTED], self._wanted[WANTED:]
        open_file: tuple[str, int] | None = None
        try:
            for item, index in given:
                if open_file is None or open_file[0] != item.path:
                    if open_file is not None:
                        os.close(open_file[1])
                    open_file = None
                    open_file = item.path, self._open(item, index)
                _write_all(open_file[1], pieces[item.pieces[index]])
                if index == len(item.pieces) - 1:
                    _finish_file(open_file[1], item)
        finally:
            if open_file is not None:
                os.close(open_file[1])
        self._fill()

    def finish(self) -> None:
        """When nothing is wanted any more: links, and what folders are like."""
        for item in self._links:
            self._writer.add_link(item.path, item.target)
        for item in reversed(self._folders):
            self._writer.finish_folder(item.path, item.mode, item.mtime)

    def close(self) -> None:
        self._writer.close()
        os.close(self._root)
        self._remove(self.folder)

    def _fill(self) -> None:
        """Look ahead as far as pieces are fetched at once. Empty files are made at once."""
        while len(self._wanted) < WANTED:
            item = next(self._files, None)
            if item is None:
                return
            self._wanted += [(item, index) for index in range(len(item.pieces))]
            if not item.pieces:
                fd = self._writer.create_file(item.path)
                try:
                    _finish_file(fd, item)
                finally:
                    os.close(fd)

    def _open(self, item: Item, index: int) -> int:
        return self._writer.continue_file(item.path) if index else self._writer.create_file(item.path)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _finish_file(fd: int, item: Item) -> None:
    if os.fstat(fd).st_size != item.size:
        raise ValueError(f"{item.path!r} is not as long as the list of files says")
    finish(fd, item.mode, item.mtime)


def _encode(item: Item) -> dict[str, Any]:
    return {name: value for name, value in asdict(item).items() if value}


def _decode(fields: dict[str, Any]) -> Item:
    item = Item(**{**fields, "pieces": tuple(fields.get("pieces", ()))})
    texts, numbers = (item.path, item.kind, item.target, *item.pieces), (item.mode, item.mtime, item.size)
    if not all(isinstance(text, str) for text in texts) or not all(type(n) is int for n in numbers):
        raise TypeError("it is not what a list of files says")
    return item
