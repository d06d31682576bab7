"""Files of a workspace, read and written for an agent: nothing outside of it, whatever links it plants.

A path is resolved first and must lie inside. Then it is opened folder by folder without following any
link, so that one that is put there in between is refused and not followed. The workspace itself must be
the folder that it was before the agent ran: an agent may own the folders above it, and put a link there.
"""

import codecs
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from clawdforge.core.models.agents import Launch
from clawdforge.drivers.acp.agent_paths import check_path, resolve
from clawdforge.drivers.folders.tree_walk import CREATE, FOLDER, READ
from clawdforge.drivers.processes.folder_identity import NotTheFolder, is_same, read_identity
from clawdforge.drivers.processes.users import User
from clawdforge.jsonrpc.encoding import LongText
from clawdforge.jsonrpc.rpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from clawdforge.wire.errors import AgentStartFailed, WorkspaceChanged

RESOURCE_NOT_FOUND: Final = -32002
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
MAX_SCAN_BYTES: Final = 256 * 1024 * 1024
PIECE_BYTES: Final = 64 * 1024
MAX_NEW_FOLDERS: Final = 64
"""So many folders are made for one file. More than anybody needs make a tree that few programs can walk."""


@dataclass(frozen=True, slots=True)
class _Root:
    """A folder and its identity when it was found. With `name`, only that one file in it is meant."""

    path: Path
    identity: tuple[int, int]
    name: str | None = None

    @classmethod
    def find(cls, path: Path, identity: str | None = None) -> "_Root":
        """With `identity`, the folder must be the one of which that was recorded."""
        real = Path(os.path.realpath(path))
        folder, name = (real, None) if real.is_dir() else (real.parent, real.name)
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if identity is not None and (name is not None or not is_same(identity, read_identity(fd))):
                raise NotTheFolder(
                    f"{path} is not the folder that the session was made in; put the folder back, or start a"
                    " new session"
                )
            found = os.fstat(fd)
        finally:
            os.close(fd)
        return cls(folder, (found.st_dev, found.st_ino), name)

    def find_parts(self, real: Path) -> tuple[str, ...] | None:
        """The names that lead from this folder to `real`; None when it lies outside."""
        if not real.is_relative_to(self.path):
            return None
        parts = real.relative_to(self.path).parts
        return parts if self.name is None or parts == (self.name,) else None

    def open(self) -> int:
        folder = os.open(self.path, FOLDER)
        found = os.fstat(folder)
        if (found.st_dev, found.st_ino) != self.identity:
            os.close(folder)
            raise OSError(errno.ELOOP, "the folder was replaced after the agent started")
        return folder


class WorkspaceFiles:
    """Blocking; meant for a thread. `readable` are files and folders outside that may be read.

    Made before the agent is started. What is written belongs to `user`, if the agent runs as one.
    """

    def __init__(
        self,
        root: Path,
        readable: Iterable[Path] = (),
        identity: str | None = None,
        user: User | None = None,
    ) -> None:
        self._user = user
        self._root = _Root.find(root, identity)
        self._readable = (self._root, *(_Root.find(path) for path in readable))

    def find_folder(self, path: str) -> Path:
        """An existing folder inside the workspace."""
        root, parts = self._locate(path, (self._root,))
        with _explain_errors(path):
            os.close(_open_folder(root, parts, create=False))
        return root.path.joinpath(*parts)

    def check(self, path: str, *, write: bool) -> None:
        """Refuses a path that lies outside, before anybody is asked about it."""
        self._locate(path, (self._root,) if write else self._readable)

    def measure(self, path: str) -> int:
        """How many bytes `read` may return at most, as long as the file does not change."""
        with self._open_file(path) as stream:
            return min(os.fstat(stream.fileno()).st_size, MAX_FILE_BYTES)

    def read(self, path: str, line: int | None, limit: int | None, measured: int | None = None) -> LongText:
        """The whole text, or `limit` lines from line `line` (the first is 1).

        A file that has grown since it was measured, like a log, is given as it was then.
        """
        end = measured if measured is not None and measured < MAX_FILE_BYTES else None
        with self._open_file(path) as stream:
            return LongText(tuple(_read_lines(stream, max(line or 1, 1), limit, end)))

    @contextmanager
    def _open_file(self, path: str) -> Iterator[BinaryIO]:
        root, parts = self._locate(path, self._readable)
        with _explain_errors(path):
            folder = _open_folder(root, parts[:-1], create=False)
            try:
                # Without O_NONBLOCK a named pipe would hold the thread for ever.
                file = os.open(parts[-1] if parts else ".", READ, dir_fd=folder)
            finally:
                os.close(folder)
            with os.fdopen(file, "rb") as stream:
                _require_regular_file(os.fstat(stream.fileno()), path)
                yield stream

    def write(self, path: str, content: str) -> None:
        """All of it or nothing; missing folders are made."""
        root, parts = self._locate(path, (self._root,))
        data = content.encode()
        if len(data) > MAX_FILE_BYTES:
            raise RpcError(INVALID_PARAMS, f"{path}: a file may have {MAX_FILE_BYTES} bytes at most")
        with _explain_errors(path):
            folder = _open_folder(root, parts[:-1], create=True, user=self._user)
            try:
                _replace(folder, parts[-1] if parts else ".", path, data, self._user)
            finally:
                os.close(folder)

    def _locate(self, path: str, roots: tuple[_Root, ...]) -> tuple[_Root, tuple[str, ...]]:
        check_path(path)
        real = resolve(self._root.path / path)
        for root in roots:
            parts = root.find_parts(real)
            if parts is not None:
                return root, parts
        raise RpcError(INVALID_PARAMS, f"{path} is outside of the workspace {self._root.path}")


def _open_folder(root: _Root, parts: tuple[str, ...], *, create: bool, user: User | None = None) -> int:
    folder = root.open()
    for number, part in enumerate(parts):
        parent = folder
        try:
            try:
                folder = os.open(part, FOLDER, dir_fd=parent)
            except FileNotFoundError:
                if not create:
                    raise
                if len(parts) - number > MAX_NEW_FOLDERS:
                    raise RpcError(
                        INVALID_PARAMS, f"the path has more than {MAX_NEW_FOLDERS} folders that do not exist"
                    ) from None
                os.mkdir(part, dir_fd=parent)
                folder = os.open(part, FOLDER, dir_fd=parent)
                _give(folder, user)
        finally:
            os.close(parent)
    return folder


def _read_lines(stream: BinaryIO, line: int, limit: int | None, end: int | None) -> Iterator[str]:
    """The text in pieces: one of megabytes would hold the interpreter for milliseconds with every copy of it.

    `end` is the byte at which the file is taken to end.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    to_skip, to_take = line - 1, limit
    scanned = taken = 0
    while to_take is None or to_take > 0:
        data = stream.read(PIECE_BYTES if end is None else min(PIECE_BYTES, end - scanned))
        if not data:
            break
        scanned += len(data)
        data, skipped = _without_lines(data, to_skip)
        to_skip -= skipped
        if to_take is not None:
            rest, found = _without_lines(data, to_take)
            data = data[: len(data) - len(rest)]
            to_take -= found
        taken += len(data)
        if taken > MAX_FILE_BYTES or scanned > MAX_SCAN_BYTES:
            raise RpcError(INVALID_PARAMS, "the text is too long; ask for a part with line and limit")
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _without_lines(data: bytes, count: int) -> tuple[bytes, int]:
    """What comes after so many ends of lines, and how many there were."""
    if not count:
        return data, 0
    parts = data.split(b"\n", min(count, len(data) + 1))
    found = len(parts) - 1
    return (parts[-1] if found == count else b""), found


def _replace(folder: int, name: str, path: str, data: bytes, user: User | None) -> None:
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    if old is not None:
        _require_regular_file(old, path)
    temporary = f".{secrets.token_hex(8)}.tmp"
    file = os.open(temporary, CREATE, 0o666, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            _give(stream.fileno(), user)
            if old is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(old.st_mode) & 0o777)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(temporary, dir_fd=folder)
        raise


def _give(made: int, user: User | None) -> None:
    if user is not None:
        os.fchown(made, user.uid, user.gid)


def _require_regular_file(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise RpcError(INVALID_PARAMS, f"{path} is not a regular file")


@contextmanager
def _explain_errors(path: str) -> Iterator[None]:
    """Turn errors of the operating system into messages for the agent."""
    try:
        yield
    except FileNotFoundError as error:
        raise RpcError(RESOURCE_NOT_FOUND, f"{path} does not exist") from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise RpcError(
                INVALID_PARAMS, f"{path} goes through a link, or through something that is not a folder"
            ) from error
        raise RpcError(INTERNAL_ERROR, f"{path}: {error.strerror}") from error


def open_files(launch: Launch, readable: tuple[Path, ...], user: User | None) -> WorkspaceFiles:
    try:
        return WorkspaceFiles(launch.cwd, readable, launch.workspace_identity, user)
    except NotTheFolder as error:
        raise WorkspaceChanged(str(error)) from error
    except OSError as error:
        raise AgentStartFailed(f"a folder of the session cannot be used: {error}") from error
