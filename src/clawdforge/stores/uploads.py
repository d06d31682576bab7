"""Stores the bytes of uploads at `files/<app>/<token>`, or below `files/.unsettled` while they are pending.

No file has a name that a caller chose. A file moves between the two by one rename in one file system.
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

from clawdforge.disk import sync_folder
from clawdforge.wire.errors import StoreUnavailable

T = TypeVar("T")

FOLDER: Final = "files"
PENDING: Final = ".unsettled"
PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
SLICE_BYTES: Final = 1024 * 1024
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class IncomingFile:
    """A pending file, open for writing.

    Its bytes go to the disk a slice at a time, of all uploads one slice: the commits of turns wait for what
    the disk has been given before them, and a file of many MiB in one go held them up for as long as it took.
    """

    def __init__(self, path: Path, handle: int, disk: asyncio.Lock) -> None:
        self._path = path
        self._handle: int | None = handle
        self._disk = disk
        self._slice = bytearray()

    async def write(self, data: bytes) -> None:
        self._slice += data
        if len(self._slice) >= SLICE_BYTES:
            await self._write_slice(os.fdatasync)

    async def seal(self) -> None:
        await self._write_slice(os.fsync)
        await _in_thread(self._seal)

    async def discard(self) -> None:
        await _in_thread(self._discard)

    async def _write_slice(self, sync: Callable[[int], None]) -> None:
        data, self._slice = self._slice, bytearray()
        async with self._disk:
            await _in_thread(lambda: self._write(data, sync))

    def _write(self, data: bytearray, sync: Callable[[int], None]) -> None:
        if self._handle is None:
            return
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._handle, rest) :]
        sync(self._handle)

    def _seal(self) -> None:
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
        self._disk = asyncio.Lock()

    def path(self, app: str, token: str) -> str:
        return str(self._folder(app) / token)

    async def create(self, app: str, token: str) -> IncomingFile:
        path = self._pending_folder(app) / token

        def work() -> IncomingFile:
            _make_folder(path.parent)
            _make_folder(self._folder(app))
            return IncomingFile(path, os.open(path, CREATE, 0o600), self._disk)

        return await _in_thread(work)

    async def put_in_place(self, app: str, token: str) -> None:
        source, target = self._pending_folder(app) / token, self._folder(app) / token
        await _in_thread(lambda: _move(source, target))

    async def take_out(self, app: str, token: str) -> None:
        source, target = self._folder(app) / token, self._pending_folder(app) / token
        await _in_thread(lambda: _move(source, target))

    async def delete_pending(self, app: str, token: str) -> None:
        path = self._pending_folder(app) / token
        await _in_thread(lambda: path.unlink(missing_ok=True))

    async def list_pending(self, app: str) -> list[str]:
        return await _in_thread(lambda: _list_names(self._pending_folder(app)))

    async def open(self, app: str, token: str) -> BinaryIO | None:
        path = self._folder(app) / token
        return await _in_thread(lambda: _open_file(path))

    async def open_pending(self, app: str, token: str) -> BinaryIO | None:
        path = self._pending_folder(app) / token
        return await _in_thread(lambda: _open_file(path))

    def pending_path(self, app: str, token: str) -> str:
        return str(self._pending_folder(app) / token)

    def _folder(self, app: str) -> Path:
        return self._data_dir / FOLDER / _folder_name(app)

    def _pending_folder(self, app: str) -> Path:
        return self._data_dir / FOLDER / PENDING / _folder_name(app)


def find_places(data_dir: Path, path: str) -> tuple[Path, Path]:
    """Where a file that the database names by `path` may be, kept or pending, in the folder of now."""
    inner = Path(*Path(path).parts[-2:])
    return data_dir / FOLDER / inner, data_dir / FOLDER / PENDING / inner


def _folder_name(app: str) -> str:
    """The app's name if it is safe as a file name, else a hash of it."""
    return app if PLAIN.fullmatch(app) else hashlib.sha256(app.encode()).hexdigest()[:32]


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, each on stable storage before anything is put into it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    sync_folder(folder.parent)


def _move(source: Path, target: Path) -> None:
    _make_folder(target.parent)
    with contextlib.suppress(FileNotFoundError):
        source.rename(target)
        sync_folder(target.parent)
        sync_folder(source.parent)


def _list_names(folder: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(path.name for path in folder.iterdir())
    return []


def _open_file(path: Path) -> BinaryIO | None:
    with contextlib.suppress(FileNotFoundError):
        return os.fdopen(os.open(path, READ), "rb")
    return None


async def _in_thread(work: Callable[[], T]) -> T:
    """Run work off the event loop. A caller that is cancelled still waits until the work has ended."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    with _explain_disk_errors():
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # marks it as seen; the cancel is what counts
            raise


@contextlib.contextmanager
def _explain_disk_errors() -> Iterator[None]:
    """Turn errors of the disk into an error that the caller understands."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            message = "the server's disk is full and the file was not stored; try again when there is room"
        else:
            message = f"the server's disk failed ({error.strerror}); try again later"
        raise StoreUnavailable(message, retry_after=60) from error
