"""Programs that the server runs on folders which agents own: they see those folders and nothing else.

An agent may swap any file of its workspace for a link, a FIFO or a device at any moment. A program with the
server's rights would follow it. So it runs where a link leads nowhere: in a sandbox whose only mounts are
the system's programs, read-only, and the folders that it is given, by descriptor. It has no network, sees no
other process, and is bounded in time and memory.

Where bubblewrap does not work, it runs as it is: an agent there can read what the server's user can anyway.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/ld.so.cache", "/etc/alternatives", "/nix/store"),
)
"""Where programs and their libraries lie. Nothing here is secret, and all of it is mounted read-only."""

LIMITED: Final = ("/bin/sh", "-c", 'ulimit -c 0; ulimit -v 2097152; ulimit -f 8388608; exec "$@"', "sh")
"""2 GiB of memory, files of 4 GiB at most. By a shell, since forking a process with threads is not safe."""
ROOT_KEEPS: Final = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
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
def hold_folder(path: Path, name: str, *, writable: bool = False) -> Iterator[Folder]:
    """Open a folder once; what takes its name afterwards is not what the helper gets."""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Folder(fd, path, name, writable)
    finally:
        os.close(fd)


class Helpers:
    """Runs helpers one at a time for each caller. Blocking: call it from a thread."""

    def __init__(self, bwrap: str | None) -> None:
        self._bwrap = bwrap

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
    ) -> bytes:
        """What it prints. `command[0]` is an absolute path."""
        wrapped = [*self._sandbox(command[0], folders, cwd), *LIMITED, *command]
        try:
            ran = subprocess.run(
                wrapped,
                input=given,
                capture_output=True,
                cwd=None if self.is_contained else cwd.path,
                env=dict(env),
                pass_fds=[folder.fd for folder in folders],
                timeout=timeout,
                umask=umask,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HelperFailed(f"{Path(command[0]).name} took longer than {timeout:g} s") from None
        except OSError as error:
            raise HelperFailed(f"{Path(command[0]).name} could not be run: {error.strerror}") from error
        if ran.returncode:
            words = ran.stderr.decode("utf-8", "replace").strip()[-500:]
            raise HelperFailed(words or f"{Path(command[0]).name} ended with code {ran.returncode}")
        return ran.stdout

    def _sandbox(self, program: str, folders: Sequence[Folder], cwd: Folder) -> list[str]:
        if self._bwrap is None:
            return []
        out = [self._bwrap, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        out += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if os.geteuid() == 0:
            for name in ROOT_KEEPS:
                out += ["--cap-add", name]
        for path in (*SYSTEM, *_parts_of(program)):
            out += ["--ro-bind-try", path, path]
        out += ["--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108 - the sandbox has its own
        for folder in folders:
            how = "--bind" if folder.writable else "--ro-bind"
            out += [how, f"/proc/self/fd/{folder.fd}", folder.name]
        return [*out, "--remount-ro", "/", "--chdir", cwd.name, "--"]


def _parts_of(program: str) -> list[str]:
    """What a program needs that does not come with the system: itself, and what lies beside its folder."""
    real = Path(program).resolve()
    if any(real.is_relative_to(folder) for folder in SYSTEM):
        return []
    beside = (real.parent.parent / name for name in ("lib", "libexec", "share"))
    return [program, str(real), *map(str, beside)]
