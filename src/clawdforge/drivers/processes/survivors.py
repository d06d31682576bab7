"""Finds processes of agents by a tag in their environment, and ends them.

The tag names the data folder, the server's boot, the session and the spawn, so that servers on one machine
leave each other's agents alone. A pid alone is never trusted: a process is held by a pidfd first, its
tag is read after that, and the signal goes through the pidfd.
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
    """Of this folder, not of one at the same path in another container. Before it is made, of its path."""
    what = os.fsencode(data_dir.resolve())
    with contextlib.suppress(OSError):
        found = data_dir.stat()
        what += f"\0{found.st_dev}:{found.st_ino}".encode()
    return hashlib.sha256(what).hexdigest()[:12]


def tag_of(pid: int) -> Tag | None:
    """None when it has none, is gone, is dead already, or may not be read by us."""
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
    """The living processes with such a tag."""
    found: dict[int, Tag] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (tag := tag_of(int(entry.name))) is not None and wanted(tag):
            found[int(entry.name)] = tag
    return found


@contextlib.contextmanager
def held(pid: int) -> Iterator[int | None]:
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
    """Kill a process that still is what it was found as, and what it started without the tag."""
    with held(pid) as fd:
        if fd is None or tag_of(pid) != tag:
            return
        below = children(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    for child in below:
        with held(child) as fd:
            if fd is not None and tag_of(child) in (None, tag):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)


async def end_survivors(wanted: Callable[[Tag], bool], *, within: float = 5.0) -> int:
    """End every process with such a tag; how many were met. Bounded by `within` seconds."""
    met: set[int] = set()
    deadline = time.monotonic() + within
    while True:
        found = await asyncio.to_thread(find_tagged, wanted)
        found.pop(os.getpid(), None)
        if not found or time.monotonic() > deadline:
            return len(met)
        met.update(found)
        for pid, tag in found.items():
            kill_tagged(pid, tag)
        await asyncio.sleep(0.01)
