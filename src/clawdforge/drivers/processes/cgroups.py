"""Groups of the kernel (cgroups) that bound how many processes and how much memory one agent takes.

A group is made below the server's own, in version 1 and 2 alike: so what bounds the server bounds its agents
too. The limits are written to the outer of two folders, and the agent is put into the inner one: what it
may reach of it in namespaces of its own making is below the limits, never the limits themselves.

Whether all this works is found out by a real try at the start. Where it does not, agents run without.
"""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from clawdforge.drivers.processes.survivors import folder_id, held

CONTROLLERS = ("pids", "memory")
INNER = "agent"
SERVER = "-server"  # the end of the name of the group that a server has moved itself into
TRY = "import os, sys\nfor door in sys.argv[1:]: os.write(int(door), b'0')"
TRY_SECONDS = 10.0
# Who sets less than a Python needs shall see agents die of it, and not run without limits.
TRY_MEMORY = 64 << 20
REMOVE_SECONDS = 2.0
REMOVE_STEP = 0.01
SYS = Path("/sys")  # where agents in bwrap cannot write
OPTIONAL = frozenset({"memory.use_hierarchy", "memory.memsw.limit_in_bytes", "memory.swap.max"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Of one agent with all it starts. `memory` is in bytes; 0 is three quarters of what there is."""

    processes: int
    memory: int


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The server's own folder in one tree of groups, and what of an agent can be bounded below it."""

    version: int
    mount: Path
    folder: Path
    bounds: frozenset[str]

    def __str__(self) -> str:
        return " and ".join(sorted(self.bounds))

    def delegated(self) -> bool:
        """Whether limited groups can be made below it as it is."""
        return self.version == 1 or self.bounds <= set(self.control.read_text().split())

    @property
    def control(self) -> Path:
        return self.folder / "cgroup.subtree_control"

    @property
    def members(self) -> Path:
        return self.folder / "cgroup.procs"

    def limits(self, ceilings: Ceilings) -> Iterator[tuple[str, str]]:
        if "pids" in self.bounds:
            yield "pids.max", str(ceilings.processes)
        if "memory" in self.bounds and self.version == 1:
            yield "memory.use_hierarchy", "1"  # before Linux 5.11 the inner folder was not bound without it
            yield "memory.limit_in_bytes", str(ceilings.memory)
            yield "memory.memsw.limit_in_bytes", str(ceilings.memory)
        elif "memory" in self.bounds:
            yield "memory.max", str(ceilings.memory)
            yield "memory.swap.max", "0"

    def make(self, name: str, ceilings: Ceilings) -> Path:
        outer = self.folder / name
        outer.mkdir()
        try:
            for file, value in self.limits(ceilings):
                if file not in OPTIONAL or (outer / file).exists():
                    (outer / file).write_text(value)
            (outer / INNER).mkdir()
        except OSError:
            remove(outer)
            raise
        return outer


class Group:
    """The group of one agent: a folder in each hierarchy, or none at all.

    One that is `shared` is another's, who ends it: only its doors are of use.
    """

    def __init__(self, folders: tuple[Path, ...] = (), memory: int = 0, *, shared: bool = False) -> None:
        self._folders = folders
        self._memory = memory
        self._shared = shared

    def share(self) -> "Group":
        """For a program that is started on the agent's behalf, and counts as one of its own."""
        return Group(self._folders, self._memory, shared=True)

    @contextlib.contextmanager
    def doors(self) -> Iterator[tuple[int, ...]]:
        """Descriptors; a process that writes `0` to each of them is in the group."""
        with contextlib.ExitStack() as open_ones:
            fds = []
            for folder in self._folders:
                fds.append(os.open(folder / INNER / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
                open_ones.callback(os.close, fds[-1])
            yield tuple(fds)

    def verdict(self) -> str:
        """A line when the kernel has killed something in here for its memory, else nothing."""
        for folder in self._folders:
            for file in (folder / INNER / "memory.oom_control", folder / "memory.events"):
                with contextlib.suppress(OSError):
                    words = file.read_text().split()
                    if "oom_kill" in words and words[words.index("oom_kill") + 1] != "0":
                        most = f"{self._memory >> 20} MiB"
                        return f"[clawdforge] probably killed for its memory: it may use {most}"
        return ""

    def remove(self) -> bool:
        """Whether it is gone. What is in it still is killed: nothing else has found it."""
        gone = [remove(folder) for folder in self._folders if not self._shared]
        return all(gone)

    async def end(self) -> None:
        """Remove it when its last process is gone; what is not gone in time is left to the next server."""
        for _ in range(round(REMOVE_SECONDS / REMOVE_STEP)):
            if self.remove():
                return
            await asyncio.sleep(REMOVE_STEP)


class Groups:
    """The groups that one server makes. Their names have the data folder and the server's boot in them."""

    def __init__(
        self,
        data_dir: Path,
        boot_id: str,
        ceilings: Ceilings,
        hierarchies: tuple[Hierarchy, ...],
        reason: str,
        details: str,
    ) -> None:
        self._family = f"clawdforge-{folder_id(data_dir)}-"
        self._prefix = f"{self._family}{boot_id}-"
        self._ceilings = ceilings
        self._hierarchies = hierarchies
        self.reason = reason
        """By what agents are held, or why not; for everybody."""

        self.details = details
        """The same with the paths of the machine; for the operator."""

        bounds = {word for hierarchy in hierarchies for word in hierarchy.bounds}
        self.processes = ceilings.processes if "pids" in bounds else None
        self.memory = ceilings.memory if "memory" in bounds else None

    def make(self, spawn: str) -> Group:
        made: list[Path] = []
        try:
            for hierarchy in self._hierarchies:
                made.append(hierarchy.make(self._prefix + spawn, self._ceilings))  # noqa: PERF401 -- kept for the except
        except OSError:
            Group(tuple(made)).remove()
            raise
        return Group(tuple(made), self._ceilings.memory)

    def end_leftovers(self) -> None:
        """End what other servers of this data folder left in groups, wherever those were. Bounded.

        A server itself is never ended: one that has given up its lock may be busy with its exit still.
        """
        deadline = time.monotonic() + REMOVE_SECONDS
        for hierarchy in self._hierarchies:
            for folder in self._leftovers(hierarchy.mount):
                if folder.name.endswith(SERVER):
                    with contextlib.suppress(OSError):
                        folder.rmdir()
                    continue
                while not remove(folder) and time.monotonic() < deadline:
                    time.sleep(REMOVE_STEP)

    def _leftovers(self, top: Path) -> Iterator[Path]:
        for here, names, _ in os.walk(top):
            for name in [name for name in names if name.startswith(self._family)]:
                names.remove(name)
                if not name.startswith(self._prefix):
                    yield Path(here, name)


def find(data_dir: Path, boot_id: str, ceilings: Ceilings, *, lasting: bool = True) -> Groups:
    """What can be bounded here, by a real try. Blocks for some milliseconds; once, at the start.

    Not `lasting`, it changes nothing that stays: what a try would need of that is foretold.
    """
    found = list(_hierarchies())
    offered = {word for hierarchy in found for word in hierarchy.bounds}
    reasons = [f"{word}: not offered to the server's group" for word in CONTROLLERS if word not in offered]
    details = reasons.copy()
    ceilings = replace(ceilings, memory=ceilings.memory or _share(found))
    name = f"clawdforge-{folder_id(data_dir)}-{boot_id}"
    made: dict[Hierarchy, Path] = {}
    foretold: list[Hierarchy] = []
    for hierarchy in found:
        try:
            if not hierarchy.delegated() and not lasting:
                _foretell(hierarchy)
                foretold.append(hierarchy)
                details.append(f"{hierarchy}: not tried, for the server would have to change its own group")
                continue
            if not hierarchy.delegated():
                _delegate(hierarchy, f"{name}{SERVER}")
            made[hierarchy] = hierarchy.make(
                f"{name}-try", replace(ceilings, memory=max(ceilings.memory, TRY_MEMORY))
            )
        except OSError as error:
            reasons.append(f"{hierarchy}: {error.strerror}")
            details.append(f"{hierarchy}: {error}")
    try:
        _try(Group(tuple(made.values())))
    except (OSError, subprocess.SubprocessError) as error:
        made.clear()
        reasons.append("no process could be put into a group")
        details.append(f"{reasons[-1]}: {error}")
    usable = (*made, *foretold)
    versions = sorted({f"cgroup v{hierarchy.version}" for hierarchy in usable})
    words = ("; ".join([*versions, *more]) for more in (reasons, details))
    return Groups(data_dir, boot_id, ceilings, usable, *words)


def remove(outer: Path) -> bool:
    """Whether the folder is gone, with all below it. What is in it still is killed."""
    for here, _, _ in os.walk(outer, topdown=False):
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(here)  # noqa: PTH106 -- as os.walk gives it
            except OSError as error:
                if error.errno != errno.EBUSY:
                    return False
                _kill(Path(here), outer.name)
                return False
    return True


def _kill(folder: Path, name: str) -> None:
    """A pid is not trusted: it is held first, and must be in the group after that."""
    with contextlib.suppress(OSError):
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            with held(pid) as fd, contextlib.suppress(OSError):
                if fd is not None and _is_in(pid, name):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)


def _is_in(pid: int, name: str) -> bool:
    """By the whole name: that of another spawn may begin with it."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return any(name in line.split("/") for line in lines)


def _try(group: Group) -> None:
    """Put a short child into it, and remove it."""
    try:
        with group.doors() as doors:
            command = [sys.executable, "-I", "-S", "-c", TRY, *map(str, doors)]
            subprocess.run(command, pass_fds=doors, check=True, capture_output=True, timeout=TRY_SECONDS)
    finally:
        group.remove()


def _hierarchies() -> Iterator[Hierarchy]:
    """Where this process is, in each hierarchy that has what we need."""
    try:
        mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for number, names, path in own:
        wanted = set(names.split(","))
        for left, right in mounts:
            kind, _, options = right.split(" ", 2)
            root, mount = left.split()[3:5]
            version = {"cgroup": 1, "cgroup2": 2}.get(kind)
            fits = version == 2 if number == "0" else version == 1 and wanted <= set(options.split(","))
            if version is None or not fits or not Path(path).is_relative_to(root) or ".." in path:
                continue
            folder = Path(mount) / Path(path).relative_to(root)
            if version == 2:
                with contextlib.suppress(OSError):
                    wanted = set((folder / "cgroup.controllers").read_text().split())
            bounds = wanted.intersection(CONTROLLERS)
            if bounds and folder.is_relative_to(SYS):
                yield Hierarchy(version, Path(mount), folder, frozenset(bounds))
                break


def _delegate(hierarchy: Hierarchy, leaf: str) -> None:
    """In version 2 a group with limited ones below it has no processes of its own: we move down, if alone."""
    order = " ".join(f"+{word}" for word in sorted(hierarchy.bounds))
    try:
        hierarchy.control.write_text(order)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        _check_alone(hierarchy)
        (hierarchy.folder / leaf).mkdir()
        (hierarchy.folder / leaf / "cgroup.procs").write_text(str(os.getpid()))
        hierarchy.control.write_text(order)


def _foretell(hierarchy: Hierarchy) -> None:
    """Fail as `_delegate` would. Only the kernel's topmost group, which has no type, may keep processes."""
    for path in (hierarchy.folder, hierarchy.control, hierarchy.members):
        if not os.access(path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if (hierarchy.folder / "cgroup.type").exists():
        _check_alone(hierarchy)


def _check_alone(hierarchy: Hierarchy) -> None:
    if set(map(int, hierarchy.members.read_text().split())) != {os.getpid()}:
        words = "other programs are in the server's group"
        raise OSError(errno.EBUSY, words, str(hierarchy.folder))


def _share(hierarchies: list[Hierarchy]) -> int:
    """Three quarters of the memory that the server may use: one agent alone never takes all of it."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for hierarchy in (hierarchy for hierarchy in hierarchies if "memory" in hierarchy.bounds):
        name = "memory.limit_in_bytes" if hierarchy.version == 1 else "memory.max"
        for folder in (hierarchy.folder, *hierarchy.folder.parents):
            with contextlib.suppress(OSError, ValueError):
                most = min(most, int((folder / name).read_text()))
    return most * 3 // 4
