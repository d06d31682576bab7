"""The processes that a test started: which there are, whether they run, and how they are ended."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def children() -> set[int]:
    """The processes that this one started itself, the dead ones that nobody has waited for included."""
    found: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread that has just ended
            found.update(map(int, file.read_text().split()))
    return found


def state(pid: int) -> str:
    """`R` runs, `S` waits for something, `T` was stopped, `Z` is dead; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def runs(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return ""


def end_group(pid: int) -> None:
    """Kill a process, and everything in its group where that is its own."""
    with suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
