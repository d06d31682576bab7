"""The program beside a server that ends its agents when the server itself stands still.

Others take over the sessions of a server that gives no sign of life, whether it is dead or was only stopped,
and a server that is stopped can end nothing. This is told on its standard input until when the server may
have agents, in seconds of the machine's clock that nobody can set, a line each; it ends when that input does.

    python -m clawdforge.drivers.processes.guard FOLDER BOOT PID

The agents are known by their tags (`survivors.py`), so those of other servers are left alone. PID is the
server's: what agents have left to it is its child, and nothing is, once it is no longer our parent.
"""

import contextlib
import os
import select
import signal
import sys
import time
from typing import Final

from clawdforge.drivers.processes.launcher import children
from clawdforge.drivers.processes.survivors import Tag, find_tagged, kill_tagged, open_pidfd, read_tag
from clawdforge.drivers.processes.tree import kill_below

SPAWN: Final = "guard"
"""In our own tag: the server takes no child for an agent's that has one, and the next server ends us."""
NICENESS: Final = -10  # where we may: who waits for a processor with everybody else comes too late
TRY_SECS: Final = 5.0
PASS_SECS: Final = 0.02
READ_BYTES: Final = 1 << 16


class Signs:
    """Until when the server may have agents. The clock also runs while the machine sleeps."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._ends_at: float | None = None
        self.is_over = False  # the server is gone

    def wait(self, within: float | None = None) -> bool:
        """Until something was said, or time is up: whether that is so."""
        left = None if self._ends_at is None else self._ends_at - _now()
        if within is not None:
            left = within
        if select.select([self._fd], [], [], None if left is None else max(0.0, left))[0]:
            self._read()
        return self._ends_at is not None and self._ends_at <= _now()

    def forget(self) -> None:
        """Nothing is to be done until the server gives another sign, if it has not just done so."""
        if self._ends_at is not None and self._ends_at <= _now():
            self._ends_at = None

    def _read(self) -> None:
        data = os.read(self._fd, READ_BYTES)
        self.is_over = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines:
            self._ends_at = _now() + float(lines[-1]) - time.monotonic()


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def end_agents(folder: str, boot: str, server: int, signs: Signs) -> None:
    """Kill them again and again until none is left, unless the server gives a sign meanwhile."""
    deadline = time.monotonic() + TRY_SECS
    is_first = True
    while time.monotonic() < deadline:
        found = find_tagged(lambda tag: (tag.folder, tag.boot) == (folder, boot) and tag.spawn != SPAWN)
        orphans = find_orphans(server)
        if not found and not orphans:
            return
        if not signs.wait(0.0):  # the look took a while: what it has found may have been started since then
            return
        for pid, tag in found.items():
            if read_tag(pid) == tag:
                kill_below(pid)  # its keeper, or the first of its namespace, ends the rest by itself
            if not is_first:
                kill_tagged(pid, tag)
        for pid in orphans:
            _kill_orphan(pid, server)
        is_first = False
        if not signs.wait(PASS_SECS) or signs.is_over:
            return


def find_orphans(server: int) -> list[int]:
    """What agents have left to the server, and one that is just being started: neither has a tag.

    None where the server is gone: its number may be another's, and its children are those of whoever
    reaps orphans on this machine.
    """
    found = []
    for pid in children(server):
        with contextlib.suppress(OSError):
            if os.getsid(pid) != os.getsid(server) and read_tag(pid) is None:
                found.append(pid)
    return found if os.getppid() == server else []


def _kill_orphan(pid: int, server: int) -> None:
    with open_pidfd(pid) as fd, contextlib.suppress(OSError):
        if fd is not None and pid in find_orphans(server):
            kill_below(pid)
            signal.pidfd_send_signal(fd, signal.SIGKILL)


def main() -> None:
    folder, boot, server = sys.argv[1:]
    signs = Signs(0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    while not signs.is_over:
        if signs.wait() and not signs.is_over:
            end_agents(folder, boot, int(server), signs)
            signs.forget()


def tag_of(folder: str, boot: str) -> Tag:
    return Tag(folder, boot, "none", SPAWN)


if __name__ == "__main__":
    main()
