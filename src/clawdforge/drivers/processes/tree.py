"""Finds the processes below another one through /proc; stops, continues and kills them."""

import contextlib
import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from clawdforge.drivers.processes.launcher import children, parent_of

LISTED = Path("/proc/thread-self/children")
STOP_SECONDS = 0.5
SHORTEST_WAIT, LONGEST_WAIT = 0.0002, 0.003
"""Between two looks whether all are stopped. They do not help who waits for a processor to stop on."""
GONE = b"X"
STOPPED = frozenset((b"T", b"t", b"Z", GONE, b"x"))


def descendants(root: int, within: float = STOP_SECONDS) -> list[int]:
    """All processes below `root`, parents before children.

    A fork bomb is followed only for `within` seconds.
    """
    found: list[int] = []
    seen = {root}
    queue = [root]
    deadline = time.monotonic() + within
    list_children = children if LISTED.exists() else look_at_all()
    while queue and time.monotonic() < deadline:
        for pid in list_children(queue.pop(0)):
            if pid not in seen:
                seen.add(pid)
                found.append(pid)
                queue.append(pid)
    return found


def look_at_all() -> Callable[[int], list[int]]:
    """What lists children where the kernel does not: every process is looked at, once for the whole tree."""
    below: defaultdict[int | None, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):  # noqa: PTH208 -- for every freeze: pathlib takes thrice as long
        if name.isdigit():
            below[parent_of(int(name))].append(int(name))
    return lambda pid: below.get(pid, [])


def send_signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def is_stopped(pid: int) -> bool:
    """Whether every thread of the process is stopped, or the process is gone."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- as above
    except OSError:
        return True
    return all(_read_state(pid, thread) in STOPPED for thread in threads)


def _read_state(pid: int, thread: str) -> bytes:
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb", buffering=0) as file:  # noqa: PTH123 -- as above
            return file.read(1024).rpartition(b")")[2][1:2]
    except OSError:
        return GONE


def has_living_child(pid: int) -> bool:
    """One that has ended, and that its parent has not asked about, is still listed."""
    return any(_read_state(child, str(child)) not in (b"Z", GONE) for child in children(pid))


def has_ended(pidfd: int) -> bool:
    watch = select.poll()
    watch.register(pidfd, select.POLLIN)
    return bool(watch.poll(0))


@contextlib.contextmanager
def stop_tree(root: int, pidfd: int | None = None) -> Iterator[None]:
    """Stop everything below `root` for the time of the block. What was stopped before stays stopped after it.

    A caller for whom the root may be reaped meanwhile passes a pidfd of it: its pid may belong to a stranger
    by then, whose processes must be left alone.

    One pass may miss a process that is just being forked, so passes are repeated until one finds nothing new
    and all are stopped. Against a fork bomb that may never happen: after a while the block runs anyway.
    """
    halted: list[int] = []
    known: set[int] = set()
    deadline, wait = time.monotonic() + STOP_SECONDS, SHORTEST_WAIT
    try:
        while True:
            left = deadline - time.monotonic()
            fresh = [pid for pid in descendants(root, left) if pid not in known]
            if pidfd is not None and has_ended(pidfd):
                break
            known.update(fresh)
            moving = [pid for pid in fresh if not is_stopped(pid)]
            send_signal(moving, signal.SIGSTOP)
            halted += moving
            if time.monotonic() > deadline:
                break
            if not all(map(is_stopped, halted)):
                time.sleep(wait)
                wait = SHORTEST_WAIT if fresh else min(2 * wait, LONGEST_WAIT)
            elif not fresh:
                break
        yield
    finally:
        send_signal(halted, signal.SIGCONT)


def kill_below(root: int) -> None:
    """Stop all processes below `root`, so that none can escape by forking, then kill them. One pass."""
    with stop_tree(root):
        send_signal(descendants(root), signal.SIGKILL)
