"""The bytes of uploads: at `files/<app>/<token>`, or in `files/.unsettled` while a row is in the making.

No name here is one that a caller chose. A move between the two places is one rename in one file system.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from clawdforge.stores.folder import sync_folder
from clawdforge.wire.errors import StoreUnavailable

T = TypeVar("T")

FOLDER: Final = "files"
UNSETTLED: Final = ".unsettled"
PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class IncomingFile:
    """An unsettled file, open for writing."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle: int | None = handle

    async def write(self, data: bytes) -> None:
        await _in_thread(lambda: self._write(data))

    async def seal(self) -> None:
        await _in_thread(self._seal)

    async def discard(self) -> None:
        await _in_thread(self._discard)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._handle is not None:
            rest = rest[os.write(self._handle, rest) :]

    def _seal(self) -> None:
        if self._handle is not None:
            os.fsync(self._handle)
            self._close()
            sync_folder(self._path.parent)

    def _discard(self) -> None:
        self._close()
        self._path.unlink(missing_ok=True)

    def _close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


class UploadFolder:
    """Implements core's `Uploads` in the data folder."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def path(self, app: str, token: str) -> str:
        return str(self._settled(app) / token)

    async def create(self, app: str, token: str) -> IncomingFile:
        path = self._unsettled(app) / token

        def work() -> IncomingFile:
            _make(path.parent)
            _make(self._settled(app))
            return IncomingFile(path, os.open(path, CREATE, 0o600))

        return await _in_thread(work)

    async def settle(self, app: str, token: str, *, keep: bool) -> None:
        source, target = self._unsettled(app) / token, self._settled(app) / token
        await _in_thread(lambda: _move(source, target) if keep else source.unlink(missing_ok=True))

    async def unsettle(self, app: str, token: str) -> None:
        source, target = self._settled(app) / token, self._unsettled(app) / token
        await _in_thread(lambda: _move(source, target))

    async def unsettled(self, app: str) -> list[str]:
        return await _in_thread(lambda: _names(self._unsettled(app)))

    async def open(self, app: str, token: str) -> BinaryIO | None:
        path = self._settled(app) / token
        return await _in_thread(lambda: _open(path))

    def _settled(self, app: str) -> Path:
        return self._data_dir / FOLDER / _folder(app)

    def _unsettled(self, app: str) -> Path:
        return self._data_dir / FOLDER / UNSETTLED / _folder(app)


def _folder(app: str) -> str:
    """The app's name where a file system can have it, else something in its stead."""
    return app if PLAIN.fullmatch(app) else hashlib.sha256(app.encode()).hexdigest()[:32]


def _make(folder: Path) -> None:
    """Folders of our own, each on stable storage before something is put into it."""
    if folder.is_dir():
        return
    _make(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    sync_folder(folder.parent)


def _move(source: Path, target: Path) -> None:
    _make(target.parent)
    with contextlib.suppress(FileNotFoundError):
        source.rename(target)
        sync_folder(target.parent)
        sync_folder(source.parent)


def _names(folder: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(path.name for path in folder.iterdir())
    return []


def _open(path: Path) -> BinaryIO | None:
    with contextlib.suppress(FileNotFoundError):
        return os.fdopen(os.open(path, READ), "rb")
    return None


async def _in_thread(work: Callable[[], T]) -> T:
    """Off the event loop, and never left running: whoever is cancelled waits for its end."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    with _told():
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # seen; the cancel is what counts
            raise


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What the disk says, in words for the caller."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            words = "the server's disk is full; the file was not kept, try again when there is room"
        else:
            words = f"the server's disk failed ({error.strerror}); try again later"
        raise StoreUnavailable(words, retry_after=60) from error
