"""Finds agents' processes by a tag in their environment, and kills them.

The tag names the data folder, the server's boot, the session and the spawn, so that servers on one machine
leave each other's agents alone. A pid alone is never trusted, since it may be reused: the process is opened
as a pidfd first, then its tag is read, and the signal is sent through the pidfd.
"""

import asyncio
import contextlib
import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clawdforge.drivers.processes.launcher import children

TAG = "CLAWDFORGE_TAG"


@dataclass(frozen=True, slots=True)
class Tag:
    folder: str
    boot: str
    session: str
    spawn: str

    def __str__(self) -> str:
        return f"{self.folder}:{self.boot}:{self.session}:{self.spawn}"


def folder_id(data_dir: Path) -> str:
    """An id of the folder itself, so that the same path in another container has another. It should exist."""
    identity = os.fsencode(data_dir.resolve())
    with contextlib.suppress(OSError):
        info = data_dir.stat()
        identity += f"\0{info.st_dev}:{info.st_ino}".encode()
    return hashlib.sha256(identity).hexdigest()[:12]


def tag_environment(tag: Tag | None) -> dict[str, str]:
    """Our own environment, for a helper that the next server may have to find."""
    return {**os.environ, **({} if tag is None else {TAG: str(tag)})}


def read_tag(pid: int) -> Tag | None:
    """None when the process has no tag, has ended, or may not be read by us."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = f"{TAG}=".encode()
    for entry in environ.split(b"\0"):
        if entry.startswith(prefix):
            parts = entry.removeprefix(prefix).decode(errors="replace").split(":")
            return Tag(*parts) if len(parts) == 4 else None
    return None


def find_tagged(wanted: Callable[[Tag], bool]) -> dict[int, Tag]:
    """The running processes whose tag is wanted."""
    found: dict[int, Tag] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (tag := read_tag(int(entry.name))) is not None and wanted(tag):
            found[int(entry.name)] = tag
    return found


@contextlib.contextmanager
def open_pidfd(pid: int) -> Iterator[int | None]:
    """A pidfd, or None when the process is gone."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def kill_tagged(pid: int, tag: Tag) -> None:
    """Kill a process if it still has this tag, and its children that have none."""
    with open_pidfd(pid) as fd:
        if fd is None or read_tag(pid) != tag:
            return
        below = children(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    for child in below:
        with open_pidfd(child) as fd:
            if fd is not None and read_tag(child) in (None, tag):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)


async def end_survivors(wanted: Callable[[Tag], bool], *, within: float = 5.0) -> int:
    """Kill every process whose tag is wanted, for at most `within` seconds. Returns how many were found."""
    seen: set[int] = set()
    deadline = time.monotonic() + within
    while True:
        found = await asyncio.to_thread(find_tagged, wanted)
        found.pop(os.getpid(), None)
        if not found or time.monotonic() > deadline:
            return len(seen)
        seen.update(found)
        for pid, tag in found.items():
            kill_tagged(pid, tag)
        await asyncio.sleep(0.01)
