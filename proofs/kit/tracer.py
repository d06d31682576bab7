"""Runs strace on a server: attaches to all threads, counts the failed calls, and always detaches."""

import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

JOINS_WITHIN = 5.0
LEAVES_WITHIN = 1.0
GONE_WITHIN = 10.0
STRUCK = b"(INJECTED)"
SPELLINGS = {
    "mkdir": "?mkdir,?mkdirat",
    "rename": "?rename,?renameat,?renameat2",
    "unlink": "?unlink,?unlinkat",
}
"""Calls that one processor's C library makes under an old name and another's under a newer one.

Without the old names, a proof on x86-64 does not see that SQLite deletes its journal.
"""


class Tracer:
    """Traces the threads of one process, but not the programs it starts. Root may trace a hardened server."""

    def __init__(self, pid: int, arguments: Sequence[str], folder: Path) -> None:
        self._pid = pid
        self._said = folder / "strace.err"
        command = ["strace", "-f", "-b", "execve", "-qq", *arguments, "-p", str(pid)]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(command, stderr=said, start_new_session=True)

    def wait_joined(self) -> bool:
        """Wait until all threads are traced; False if that takes too long. A new thread may escape it."""
        end = time.monotonic() + JOINS_WITHIN
        while time.monotonic() < end and self.alive:
            found = tracers(self._pid)
            if not found:  # the process has ended: what is not there cannot escape
                return True
            if found == {self._process.pid}:
                return True
            time.sleep(0.005)
        return False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Wait for the tracer, which ends after its process, with a complete log."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVES_WITHIN)

    def leave(self) -> None:
        """After this nothing is traced any more, whatever the tracer is doing.

        A tracer that is asked to end waits for each thread in turn. One of them may be inside vfork, waiting
        for a child that the same tracer holds: then both wait for ever, and only the kernel can part them.
        """
        self._process.terminate()  # which does nothing to one that has been waited for
        try:
            self._process.wait(LEAVES_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(GONE_WITHIN)

    def words(self) -> str:
        return self._said.read_text(errors="replace").strip()[-500:] or "no words"


def every_spelling(call: str) -> str:
    """The set of system calls, as strace takes it, that do what `call` says on any processor."""
    return SPELLINGS.get(call, call)


def tracers(pid: int) -> set[int]:
    """The pids that trace a process's threads, 0 for an untraced one; empty when the process has ended."""
    found = set()
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):  # a thread that has just ended
            lines = dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
            if lines["State"][0] not in "ZX":
                found.add(int(lines["TracerPid"]))
    return found


def count_strikes(log: Path, call: str) -> int:
    """How many calls of this name were really made to fail, by the tracer's log."""
    lines = log.read_bytes().splitlines() if log.exists() else []
    return sum(STRUCK in line and call.encode() in line for line in lines)
