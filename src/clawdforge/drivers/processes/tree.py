"""A process and everything below it: found through /proc, stopped, continued, signalled."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator

from clawdforge.drivers.processes.launcher import children

STOP_SECONDS = 0.5
GONE = b"X"
STOPPED = frozenset((b"T", b"t", b"Z", GONE, b"x"))


def descendants(root: int, within: float = STOP_SECONDS) -> list[int]:
    """Below `root`, without it; parents before children. Endless forks are followed only so long."""
    found: list[int] = []
    seen = {root}
    queue = [root]
    deadline = time.monotonic() + within
    while queue and time.monotonic() < deadline:
        for pid in children(queue.pop(0)):
            if pid not in seen:
                seen.add(pid)
                found.append(pid)
                queue.append(pid)
    return found


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def is_still(pid: int) -> bool:
    """Every thread of it is stopped, or it is gone."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- after every turn: pathlib takes thrice as long
    except OSError:
        return True
    return all(_state(pid, thread) in STOPPED for thread in threads)


def _state(pid: int, thread: str) -> bytes:
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb", buffering=0) as file:  # noqa: PTH123 -- as above
            return file.read(1024).rpartition(b")")[2][1:2]
    except OSError:
        return GONE


def has_ended(pidfd: int) -> bool:
    watch = select.poll()
    watch.register(pidfd, select.POLLIN)
    return bool(watch.poll(0))


@contextlib.contextmanager
def stopped(root: int, pidfd: int | None = None) -> Iterator[None]:
    """Nothing below `root` runs inside of this. What was stopped before stays so after it.

    Whoever cannot rule out that the root is reaped meanwhile holds it by a pidfd: its number may be a
    stranger's by then, whose processes are left alone.

    One pass may miss what is being forked; a pass that finds nobody new, with all standing still, is the end.
    Where that does not come in time, for the forks of a bomb, it goes on with what stands still by then.
    """
    halted: list[int] = []
    known: set[int] = set()
    deadline = time.monotonic() + STOP_SECONDS
    try:
        while True:
            left = deadline - time.monotonic()
            fresh = [pid for pid in descendants(root, left) if pid not in known]
            if pidfd is not None and has_ended(pidfd):
                break
            known.update(fresh)
            moving = [pid for pid in fresh if not is_still(pid)]
            send(moving, signal.SIGSTOP)
            halted += moving
            if time.monotonic() > deadline:
                break
            if not all(map(is_still, halted)):
                time.sleep(0.0002)
            elif not fresh:
                break
        yield
    finally:
        send(halted, signal.SIGCONT)


def kill_below(root: int) -> None:
    """One pass: all stopped, so that none can fork away, then killed."""
    with stopped(root):
        send(descendants(root), signal.SIGKILL)
