"""What an agent sees of the file system: a list of mounts, each with the reason why it is there.

The list is complete. Whatever is not on it does not exist for the agent: no home of the operator, no other
session, no socket of the machine. A path that was computed wrongly shows nothing.
"""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Final, Literal, Self

How = Literal["read-only", "writable", "link", "copy", "empty", "processes", "devices"]

SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix/store", "/gnu/store", "/run/current-system"),
)
"""Programs and libraries of the machine. On most machines all but the first are links into it."""

ETC_FOLDERS: Final = (
    *("/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"),
    "/etc/crypto-policies",
)
ETC_FILES: Final = (
    *("passwd", "group", "hosts", "host.conf", "resolv.conf", "nsswitch.conf", "gai.conf", "services"),
    *("protocols", "ld.so.cache", "ld.so.conf", "ssl/openssl.cnf", "pki/tls/openssl.cnf", "gitconfig"),
    *("localtime", "timezone", "os-release", "mtab", "shells", "profile", "bash.bashrc", "inputrc"),
)
"""What programs look up in /etc. No passwords, no keys, no settings of services, and no npmrc or pip.conf,
which may hold tokens. Files are copied, which is faster than mounting each of them."""

ETC_PATHS: Final = tuple(Path("/etc", name) for name in ETC_FILES)

KERNEL_SETTINGS: Final = tuple(
    f"/proc/{name}" for name in ("sys", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "sysrq-trigger")
)
"""Where root changes the machine with plain writes, even without any power of root's: with the program that
the kernel runs after a crash it would be out of the sandbox."""

TMP: Final = Path("/tmp")  # noqa: S108 -- the agent's own
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- the same
MAX_COPY: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Mount:
    """One place that an agent sees, how it is there, and why. `target` is where a link leads."""

    path: Path
    how: How
    why: str
    target: str = ""

    @property
    def is_bind(self) -> bool:
        return self.how in ("read-only", "writable")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolders:
    """The folders that one agent process may use, and the data folder, which is hidden from it."""

    data_dir: Path
    home: Path
    workspace: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    copies: tuple[tuple[Path, Path], ...] = ()  # files that it sees at the first path, kept at the second
    etc: tuple[Path, ...] = ()  # files below /etc that only it has
    runtime: tuple[Mount, ...] = ()  # what its program needs
    unsafe: tuple[Path, ...] = ()  # those in `runtime` that other agents may replace
    tmp: Path | None = None  # what it sees as /tmp; None is a new one, which ends with the process

    def list_held(self) -> tuple[Path, ...]:
        """What has to be opened once, since agents may replace it by a link at any moment."""
        tmp = () if self.tmp is None else (self.tmp,)
        copies = (kept for _, kept in self.copies)
        return (
            *(self.workspace, self.home, *self.writable, *copies),
            *(*self.readable, *self.unsafe, *tmp),
        )


def plan_base(servers_own: Sequence[Mount]) -> tuple[Mount, ...]:
    """What every agent sees: the system, and what the server itself needs inside.

    The server's code is read-only even in a workspace: who may change it would not be contained.
    """
    return (*_system(), *_drop_shown(servers_own, [*_system(), *servers_own], ""))


def plan_mounts(folders: AgentFolders, base: Sequence[Mount], guarded: Sequence[Path] = ()) -> list[Mount]:
    """Everything that the agent sees, parents first: what is mounted later lies on top.

    `guarded` is read-only wherever it can be seen: the server's own code, in the folder of its developer.
    """
    data_dir = str(folders.data_dir.resolve())
    fixed = {mount.path: mount for mount in (*base, *_own(folders))}
    for mount in _drop_shown(folders.runtime, [*fixed.values(), *folders.runtime], data_dir):
        fixed.setdefault(mount.path, mount)
    for path in list_exposed(folders, guarded):
        fixed[path] = Mount(path, "read-only", "the server's own code")
    if any(mount.is_bind and is_below(data_dir, str(mount.path)) for mount in fixed.values()):
        fixed.setdefault(Path(data_dir), Mount(Path(data_dir), "empty", "hides the server's data"))
    if folders.tmp is not None and not any(str(path).startswith(f"{TMP}/") for path in fixed):
        fixed[TMP] = Mount(TMP, "writable", "its own temporary files", str(folders.tmp))
    return sorted(fixed.values(), key=lambda mount: (str(mount.path).count("/"), str(mount.path)))


def list_exposed(folders: AgentFolders, guarded: Sequence[Path]) -> list[Path]:
    """Those that lie in a folder which the agent may write. Who may change our code is not contained."""
    writable = [str(mount.path) for mount in _own(folders) if mount.how == "writable"]
    return [path for path in guarded if any(is_below(str(path), folder) for folder in writable)]


def is_below(path: str, folder: str) -> bool:
    """Whether a path is that folder or lies in it. By text: it is asked often at each start."""
    return path == folder or path.startswith(folder if folder.endswith("/") else f"{folder}/")


def list_arguments(mounts: Sequence[Mount], sources: Mapping[Path, str]) -> Iterator[str]:
    """The arguments of bwrap for these mounts. `sources` names what is held open: see `wrap`."""
    yield from ("--perms", "0755", "--dir", "/etc")
    made, binds = {"/", "/etc"}, {str(mount.path) for mount in mounts if mount.is_bind}
    for mount in mounts:
        for folder in _list_new_parents(str(mount.path), made, binds):
            yield from ("--perms", "0755", "--dir", folder)
        yield from _list_words(mount, sources)
    if "/" not in binds:
        yield from ("--remount-ro", "/")


def _list_words(mount: Mount, sources: Mapping[Path, str]) -> Sequence[str]:
    path = str(mount.path)
    if mount.how == "link":
        return ("--symlink", mount.target, path)
    if mount.how == "copy":
        return ("--perms", "0444", "--file", sources[mount.path], path) if mount.path in sources else ()
    if mount.how == "empty":
        return ("--perms", "1777" if mount.path in (TMP, SHARED_MEMORY) else "0755", "--tmpfs", path)
    if mount.how == "processes":
        return ("--proc", path)
    if mount.how == "devices":
        return ("--dev", path)
    source = sources.get(Path(mount.target) if mount.target else mount.path, mount.target or path)
    return ("--ro-bind" if mount.how == "read-only" else "--bind", source, path)


def _list_new_parents(path: str, made: set[str], binds: Container[str]) -> Iterator[str]:
    """Folders on the way that lie in no mount. bwrap alone would let only their owner look into some."""
    for folder in _list_above(path):
        if folder in binds:
            return  # and so is all below it
        if folder not in made:
            made.add(folder)
            yield folder


def _list_above(path: str) -> Iterator[str]:
    """The folders that a path lies in, from the top on."""
    at = path.find("/", 1)
    yield "/"
    while at > 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _drop_shown(mounts: Iterable[Mount], others: Sequence[Mount], data_dir: str) -> Iterator[Mount]:
    """Those that are not visible by another one already. What lies in the data folder is hidden by it."""
    binds = {str(mount.path) for mount in others if mount.is_bind}
    for mount in mounts:
        path = str(mount.path)
        around = [folder for folder in _list_above(path) if folder in binds and folder != path]
        if data_dir and is_below(path, data_dir):
            around = [folder for folder in around if is_below(folder, data_dir)]
        if not around:
            yield mount


def _system() -> Iterator[Mount]:
    yield Mount(Path("/proc"), "processes", "its own processes")
    settings = (path for path in map(Path, KERNEL_SETTINGS) if path.exists())
    yield from (Mount(path, "read-only", "settings of the kernel") for path in settings)
    yield Mount(Path("/dev"), "devices", "null, zero, random, tty and the like")
    yield Mount(TMP, "empty", "its own temporary files")
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield Mount(path, "link", "the system's programs", str(path.readlink()))
        elif path.is_dir():
            yield Mount(path, "read-only", "the system's programs")
    for name in ETC_FOLDERS:
        if Path(name).is_dir():
            yield Mount(Path(name), "read-only", "the system's settings")
    for path in ETC_PATHS:
        if path.is_symlink() and str(path.resolve()).startswith(("/usr/", "/proc/", "/nix/store/")):
            yield Mount(path, "link", "the system's settings", str(path.readlink()))
        elif path.is_file():
            yield Mount(path, "copy", "the system's settings")


def _own(folders: AgentFolders) -> Iterator[Mount]:
    for path in folders.readable:
        yield Mount(path, "read-only", "given to this session")
    for path in folders.writable:
        yield Mount(
            path, "writable", "shared with the operator: credentials, or the repository of a worktree"
        )
    for path, kept in folders.copies:
        yield Mount(path, "writable", "credentials: a copy for the user of its app", str(kept))
    yield from (Mount(path, "copy", "its settings inside a sandbox") for path in folders.etc)
    yield Mount(folders.workspace, "writable", "the workspace")
    yield Mount(folders.home, "writable", "its home")


class SystemFiles:
    """The files of /etc that an agent gets a copy of, open for the time of a `with` block.

    `added` are lines at the end of some of them, so that the agent's user has a name there. `own` are whole
    files that no other agent has.
    """

    def __init__(
        self, added: Mapping[Path, bytes] = MappingProxyType({}), own: Iterable[tuple[Path, bytes]] = ()
    ) -> None:
        self._added = added
        self._own = tuple(own)
        self._fds: dict[Path, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for path in ETC_PATHS:
                fd = _open_small(path)
                if fd is not None:
                    if path in self._added:
                        fd = _add_to_copy(fd, self._added[path])
                    self._fds[path] = fd
                    stack.callback(os.close, fd)
            for path, content in self._own:
                self._fds[path] = _hold(content)
                stack.callback(os.close, self._fds[path])
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def fds(self) -> tuple[int, ...]:
        return tuple(self._fds.values())

    @property
    def sources(self) -> Mapping[Path, str]:
        return {path: str(fd) for path, fd in self._fds.items()}


def _add_to_copy(fd: int, lines: bytes) -> int:
    """The descriptor of a copy with some lines more. The first descriptor is closed."""
    with os.fdopen(fd, "rb") as file:
        content = file.read(MAX_COPY)
    return _hold(content + (b"" if content.endswith(b"\n") else b"\n") + lines)


def _hold(content: bytes) -> int:
    """A descriptor to read it from, of a file that is nowhere."""
    fd = os.memfd_create("etc")
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _open_small(path: Path) -> int | None:
    """None for what is missing, may not be read by everybody, or is too large to be copied."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    info = os.fstat(fd)
    if info.st_mode & 0o170004 == 0o100004 and info.st_size <= MAX_COPY:
        return fd
    os.close(fd)
    return None
