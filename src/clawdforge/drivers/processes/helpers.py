"""Programs that the server runs on folders which agents own: they see those folders and nothing else.

An agent may swap any file of its workspace for a link, a FIFO or a device at any moment. A program with the
server's rights would follow it. So it runs where a link leads nowhere: in a sandbox whose only mounts are
the system's programs, read-only, and the folders that it is given, by descriptor. It has no network, sees no
other process, and is bounded in time and memory, and where there are cgroups in processes too.

Where bubblewrap does not work, Landlock leaves it the same places and no others. Where that does not work
either, it runs as it is: an agent there can read what the server's user can anyway.
"""

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from clawdforge.drivers.processes import landlock
from clawdforge.drivers.processes.cgroups import JOINED, SHELL, Group, Groups
from clawdforge.drivers.processes.folder_identity import is_same, read_identity
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.drivers.processes.held_paths import PathChanged, PathMissing, open_real_path
from clawdforge.drivers.processes.launching import find_command
from clawdforge.drivers.processes.walls import NO_WALLS, Walls

SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/ld.so.cache", "/etc/alternatives", "/nix/store"),
)
"""Where programs and their libraries lie. Nothing here is secret, and all of it is mounted read-only."""

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom")
NO_LIMITS: Final = ("0", "0", "0", "-")
"""For the launcher, which would also set limits and join groups."""

SCRIPT: Final = """
while [ "$1" ]; do
    [ "$(stat -c %d:%i "$1")" = "$2" ] || { echo "$1 was replaced while it was mounted" >&2; exit 1; }
    shift 2
done
shift
ulimit -c 0; ulimit -v 2097152; ulimit -f 8388608
exec "$@"
"""
LIMITED: Final = ("/bin/sh", "-c", SCRIPT, "sh")
"""2 GiB of memory, files of 4 GiB at most. By a shell, since forking a process with threads is not safe.

Before that it compares folders with their device and inode, up to an empty word.
"""

CEILINGS: Final = Ceilings(processes=512, memory=2 << 30)
"""`git` has a thread for each core. Cached files count as memory, and the kernel gives them up in time."""

MAX_OUTPUT: Final = 64 << 20
PIECE: Final = 1 << 16
GRACE_SECS: Final = 2.0
"""For what was killed to let go of its pipe."""

MAX_WORDS: Final = 500
ROOT_KEEPS: Final = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
"""What root needs for files of other users inside the folders; nothing else is in sight."""


class HelperFailed(Exception):
    """It could not be run, took too long, or ended with an error; the message has its words."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder for a helper: a descriptor of it here, and where the helper finds it."""

    fd: int
    path: Path
    name: str
    writable: bool = False


@contextlib.contextmanager
def hold_folder(
    path: Path, name: str, *, writable: bool = False, identity: str | None = None
) -> Iterator[Folder]:
    """Open a folder once; what takes its name afterwards is not what the helper gets.

    With `identity`, it must be the folder of which that was recorded.
    """
    try:
        fd = open_real_path(path)
    except (PathChanged, PathMissing) as error:
        raise HelperFailed(f"{path} is gone, or was replaced by a link") from error
    try:
        if identity is not None and not is_same(identity, read_identity(fd)):
            raise HelperFailed(f"{path} is not the folder that it was; put the folder back")
        yield Folder(fd, path, name, writable)
    finally:
        os.close(fd)


class Helpers:
    """Runs helpers. Blocking: call it from a thread."""

    def __init__(self, bwrap: str | None, walls: Walls = NO_WALLS, groups: Groups | None = None) -> None:
        self._bwrap = bwrap
        self._walls = walls
        self._groups = groups
        self._mounts_fds = bwrap is not None and b"--bind-fd" in _read_help(bwrap)

    @property
    def is_contained(self) -> bool:
        return self._bwrap is not None

    def place_of(self, folder: Folder) -> str:
        """Where a helper finds a folder."""
        return folder.name if self.is_contained else str(folder.path)

    def run(
        self,
        command: Sequence[str],
        folders: Sequence[Folder],
        *,
        cwd: Folder,
        env: Mapping[str, str],
        timeout: float,
        given: bytes = b"",
        umask: int = -1,
        keep: int | None = None,
        app: str | None = None,
        then: Sequence[str] = (),
    ) -> bytes:
        """What it prints. `command[0]` is an absolute path. With `app`, it has that app's part of processors.

        `then` is another command of the same program: it runs in the same sandbox if the first went well, and
        what it prints is meant.

        With `keep`, one that prints more than so many bytes is ended, and what it has printed is returned.
        """
        most = MAX_OUTPUT if keep is None else keep
        program = Path(command[0]).name
        with _hold_input(given) as stdin, tempfile.TemporaryFile() as words, self._group(app) as group:
            info, info_end = os.pipe()
            try:
                sandbox = self._sandbox(command[0], folders, cwd, info_end)
                child = subprocess.Popen(
                    [
                        *(*JOINED, *map(str, group.list_members()), "", *sandbox),
                        *(*LIMITED, *self._list_compared(folders), "", *_join(command, then)),
                    ],
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=words,
                    cwd=None if self.is_contained else f"/proc/self/fd/{cwd.fd}",
                    env=dict(env),
                    pass_fds=[info_end, *(folder.fd for folder in folders)],
                    umask=umask,
                    start_new_session=True,
                )
            except OSError as error:
                os.close(info)
                raise HelperFailed(f"{program} could not be run: {error.strerror}") from error
            finally:
                os.close(info_end)
            out, is_late = self._wait(child, info, group, timeout, most)
            if is_late:
                raise HelperFailed(f"{program} took longer than {timeout:g} s")
            if len(out) > most:
                if keep is not None:
                    return out
                raise HelperFailed(f"{program} printed more than {MAX_OUTPUT} bytes")
            if child.returncode:
                raise HelperFailed(_last_words(words) or f"{program} ended with code {child.returncode}")
        return out

    @contextlib.contextmanager
    def _group(self, app: str | None) -> Iterator[Group]:
        """One of its own, which is gone afterwards with all that is left in it."""
        try:
            groups = self._groups
            group = Group() if groups is None else groups.make(_draw_name(), CEILINGS, app=app)
        except OSError as error:
            raise HelperFailed(f"its control group could not be made: {error}; restart the server") from error
        try:
            yield group
        finally:
            group.end_now()

    def _wait(
        self, child: subprocess.Popen[bytes], info: int, group: Group, timeout: float, most: int
    ) -> tuple[bytes, bool]:
        """Everything it prints, within bounds of time and memory, and whether it took too long."""
        late = threading.Event()

        def end() -> None:
            late.set()
            _kill(child)
            group.remove()

        timer = threading.Timer(timeout, end)
        timer.start()
        first = _open_first(info) if self.is_contained else None
        try:
            with child:
                end_at = time.monotonic() + timeout + GRACE_SECS
                out, is_whole = _read_until(cast("IO[bytes]", child.stdout), child.pid, end_at, most)
                if not is_whole:
                    _kill(child)
                    group.remove()
        finally:
            timer.cancel()
            os.close(info)
            _reap(first)
        return out, late.is_set()

    def _sandbox(self, program: str, folders: Sequence[Folder], cwd: Folder, info: int) -> list[str]:
        if self._bwrap is None:
            return self._wall_in(program, folders, info)
        out = [self._bwrap, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        out += ["--die-with-parent", "--new-session", "--info-fd", str(info), "--cap-drop", "ALL"]
        if os.geteuid() == 0:
            for name in ROOT_KEEPS:
                out += ["--cap-add", name]
        for path in (*SYSTEM, *_parts_of(program)):
            out += ["--ro-bind-try", path, path]
        out += ["--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - the sandbox has its own
        for folder in folders:
            how = "--bind" if folder.writable else "--ro-bind"
            if self._mounts_fds:  # it closes the descriptor, from which one could walk to the folder's parent
                out += [f"{how}-fd", str(folder.fd), folder.name]
            else:
                out += [how, f"/proc/self/fd/{folder.fd}", folder.name]
        return [*out, "--remount-ro", "/", "--chdir", cwd.name, "--"]

    def _list_compared(self, folders: Sequence[Folder]) -> Iterator[str]:
        """Without `--bind-fd`, bwrap turns a descriptor into a path again and mounts what is there then."""
        if not self.is_contained or self._mounts_fds:
            return
        for folder in folders:
            state = os.fstat(folder.fd)
            yield from (folder.name, f"{state.st_dev}:{state.st_ino}")

    def _wall_in(self, program: str, folders: Sequence[Folder], status: int) -> list[str]:
        """The launcher puts the walls up around itself, then becomes the helper."""
        if not self._walls.files:
            return []
        rights = dict.fromkeys((*SYSTEM, *_parts_of(program)), landlock.READ)
        rights |= dict.fromkeys(DEVICES, landlock.USE_DEVICES)
        for folder in folders:
            rights[f"/proc/self/fd/{folder.fd}"] = landlock.WRITE if folder.writable else landlock.READ
        words = self._walls.words(landlock.Access(rights), (), sees_others=True)
        return [*find_command(), "exec", str(status), *NO_LIMITS, *words, "--"]


@contextlib.contextmanager
def _hold_input(given: bytes) -> Iterator[IO[bytes] | int]:
    if not given:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file


def _join(command: Sequence[str], then: Sequence[str]) -> Sequence[str]:
    """A sandbox costs more than most of what is run in one."""
    if not then:
        return command
    return SHELL, "-c", f"{shlex.join(command)} >/dev/null && exec {shlex.join(then)}"


def _read_help(bwrap: str) -> bytes:
    return subprocess.run([bwrap, "--help"], capture_output=True, check=False).stdout


def _parts_of(program: str) -> list[str]:
    """What a program needs that does not come with the system: itself, and what lies beside its folder."""
    real = Path(program).resolve()
    if any(real.is_relative_to(folder) for folder in SYSTEM):
        return []
    beside = (real.parent.parent / name for name in ("lib", "libexec", "share"))
    return [program, str(real), *map(str, beside)]


def _open_first(info: int) -> int | None:
    """Hold the first process of the sandbox: bwrap ends before it, and it is left to us, a subreaper."""
    said = b""
    while piece := os.read(info, 4096):
        said += piece
    with contextlib.suppress(ValueError, KeyError, ProcessLookupError):
        return os.pidfd_open(json.loads(said)["child-pid"])
    return None


def _draw_name() -> str:
    return f"helper-{uuid.uuid4().hex}"


def _read_until(pipe: IO[bytes], writer: int, end: float, most: int) -> tuple[bytes, bool]:
    """What is written until all writers are gone, which is the second value; or the first one is, or it is
    too much, or too late.

    A process that left the helper's session outlives its kill where there are no groups, with the pipe open.
    And where bwrap itself is killed before it has let its child begin, that child waits for it for ever.
    """
    out = bytearray()
    gone = os.pidfd_open(writer)
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(gone, select.POLLIN)
        while len(out) <= most:
            ready = dict(poll.poll(max(0.0, end - time.monotonic()) * 1000))
            if pipe.fileno() not in ready:  # too late, or all that the first one has written is read
                break
            piece = os.read(pipe.fileno(), PIECE)
            if not piece:
                return bytes(out), True
            out += piece
    finally:
        os.close(gone)
    return bytes(out), False


def _kill(child: subprocess.Popen[bytes]) -> None:
    """With what it started: without a sandbox that would live on, and hold the pipe that we read."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _reap(first: int | None) -> None:
    if first is None:
        return
    with contextlib.suppress(ChildProcessError):  # where we are no subreaper, somebody else reaps it
        os.waitid(os.P_PIDFD, first, os.WEXITED)
    os.close(first)


def _last_words(stderr: IO[bytes]) -> str:
    size = stderr.seek(0, os.SEEK_END)
    stderr.seek(max(0, size - 4 * MAX_WORDS))
    return stderr.read().decode("utf-8", "replace").strip()[-MAX_WORDS:]
