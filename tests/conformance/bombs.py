"""The part of the hostile agent that takes more than its share: of processes, memory, files and limits.

Standard library only, as `hostile.py`. Each bomb is bounded by itself, for the machine of whoever tests.
"""

import contextlib
import ctypes
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUSER = 0x00020000, 0x02000000, 0x10000000
MANY = 3000
TERMINALS, EACH = 8, 100
MUCH = 1 << 30
STEP = 16 << 20


def call(name: str, *arguments: Any) -> int:
    result = int(getattr(LIBC, name)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def done(work: Callable[[], object]) -> bool:
    """Whether it worked, in a process of its own: what was taken hold of is let go with it."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    try:
        work()
    except (OSError, ValueError):
        os._exit(1)
    os._exit(0)


class Bombs:
    """Each method is one attempt; what it returns is the loot. `client` is the other end of the pipes."""

    client: Any
    facts: dict[str, Any]

    def more_files_than_allowed(self) -> str:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
        return "raised"

    def hide_from_the_memory_killer(self) -> str:
        Path("/proc/self/oom_score_adj").write_text("-900")
        return "hidden"

    def core_file(self) -> str:
        return str(resource.getrlimit(resource.RLIMIT_CORE)[1] or "")

    def many_processes(self) -> str:
        """They end with their parent also when it is killed, by the end of the pipe.

        Other tests go first, but this one has to get on beside them: nice 19 is next to nothing on a machine
        that is busy, and the turn is over before the bomb has gone off.
        """
        os.nice(5)
        many = self.facts.get("many", MANY)
        reader, writer = os.pipe()
        pids: list[int] = []
        try:
            for _ in range(many):
                pids.append(os.fork())
                if pids[-1] == 0:
                    os.close(writer)
                    os.read(reader, 1)
                    os._exit(0)
        finally:
            os.close(writer)
            os.close(reader)
            for pid in pids:
                os.waitpid(pid, 0)
        return f"{many} processes"

    def many_processes_in_terminals(self) -> str:
        """Each by itself is within the limit; all of them, in commands that the server starts, are not."""
        each = self.facts.get("each", EACH)
        line = f"n=0; while [ $n -lt {each} ]; do sleep 60 & n=$((n+1)); done; echo all; wait"
        names: list[str] = []
        said, end = "", time.monotonic() + 45
        try:
            while len(names) < TERMINALS:
                names.append(self.client.request("terminal/create", command=line)["terminalId"])
            for name in names:
                said = ""
                while not said and time.monotonic() < end:
                    time.sleep(0.05)
                    said = self.client.request("terminal/output", terminalId=name)["output"].strip()
                if said != "all":
                    raise PermissionError(said or "it stands still")
        finally:
            for name in names:
                self.client.request("terminal/release", terminalId=name)
        return f"{TERMINALS * each} processes"

    def much_memory(self) -> str:
        held = [b"x" * STEP for _ in range(self.facts.get("much", MUCH) // STEP)]
        return f"{len(held) * STEP} bytes"

    def fill_the_disk(self) -> str:
        path = Path("large")
        os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), 1 << 40)
        path.unlink()
        return "no limit on a file"

    def leave_its_group(self) -> str:
        """Into the server's own group, which lies two above."""

        def work() -> None:
            for file in self._files("cgroup.procs", 3):
                file.write_text(str(os.getpid()))
                return
            raise FileNotFoundError

        return "left" if done(work) else ""

    def raise_its_limit(self) -> str:
        raised = []
        for name, most in (("pids.max", "max"), ("memory.max", "max"), ("memory.limit_in_bytes", "-1")):
            for file in self._files(name, 2):
                before = file.read_text()
                with contextlib.suppress(OSError):
                    file.write_text(most)
                    raised.append(name)
                    file.write_text(before)
        return " ".join(raised)

    def raise_it_in_namespaces(self) -> str:
        """Root in namespaces of its own may mount the groups, from its own one downwards."""

        def work() -> None:
            user, group = os.geteuid(), os.getegid()
            call("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
            target = Path(os.environ["HOME"]) / "groups"
            target.mkdir(exist_ok=True)
            old = Path("/sys/fs/cgroup/pids").exists()
            kind, options = (b"cgroup", b"pids") if old else (b"cgroup2", None)
            call("mount", b"none", os.fsencode(target), kind, 0, options)
            file = target / "pids.max"
            limit = int(file.read_text())  # `max` is no number: then this is not where the limit is
            file.write_text(str(limit + 1))

        return "raised" if done(work) else ""

    def _files(self, name: str, up: int) -> list[Path]:
        """Files of that name so many folders above; 1 is the folder of our own group."""
        return [path for path in (folder / name for folder in self._above(up)) if path.exists()]

    def _above(self, up: int) -> Iterator[Path]:
        own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        for number, names, path in own:
            folder = "unified" if number == "0" else names
            for top in (Path("/sys/fs/cgroup") / folder, Path("/sys/fs/cgroup")):
                here = top / path.lstrip("/")
                if here.exists() and "clawdforge-" in path:
                    yield here if up == 1 else here.parents[up - 2]
                    break
