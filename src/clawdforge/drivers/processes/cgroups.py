"""Limits how many processes and how much memory one agent may use, with the kernel's cgroups.

Each agent's group is made below the server's own, in cgroup version 1 and 2 alike, so limits on the server
also apply to its agents. The limits are written to the outer of two folders and the agent is put into the
inner one: even from namespaces of its own, an agent can reach only what is below the limits, never the
limits.

Whether this works is tried for real when the server starts. Where it does not, agents run without these
limits.
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

from clawdforge.drivers.processes.survivors import folder_id, open_pidfd

CONTROLLERS = ("pids", "memory")
INNER = "agent"
SERVER = "-server"  # suffix of the group that a server moves itself into
TRY = "import os, sys\nfor fd in sys.argv[1:]: os.write(int(fd), b'0')"
TRY_SECONDS = 10.0
# The trial run gets at least this much. A limit too small for Python must show when agents start; it must not
# make the trial fail and leave agents without any limit.
TRY_MEMORY = 64 << 20
REMOVE_SECONDS = 2.0
REMOVE_STEP = 0.01
SYS = Path("/sys")  # where agents in bwrap cannot write
OPTIONAL = frozenset({"memory.use_hierarchy", "memory.memsw.limit_in_bytes", "memory.swap.max"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """What one agent, with everything it starts, may use.

    `memory` is in bytes; 0 means three quarters of all.
    """

    processes: int
    memory: int


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The server's own folder in one tree of groups, and which controllers can limit agents below it."""

    version: int
    mount: Path
    folder: Path
    bounds: frozenset[str]

    def __str__(self) -> str:
        return " and ".join(sorted(self.bounds))

    def is_delegated(self) -> bool:
        """Whether groups with limits can be made below this folder without changing anything first."""
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
            yield "memory.use_hierarchy", "1"  # Linux before 5.11 did not limit the inner folder without it
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
            remove_group(outer)
            raise
        return outer


class Group:
    """The group of one agent: a folder in each hierarchy, or none at all.

    A `shared` one belongs to another process, which removes it; it can only be joined.
    """

    def __init__(self, folders: tuple[Path, ...] = (), memory: int = 0, *, shared: bool = False) -> None:
        self._folders = folders
        self._memory = memory
        self._shared = shared

    def share(self) -> "Group":
        """The same group, for a program that runs on the agent's behalf and counts towards its limits."""
        return Group(self._folders, self._memory, shared=True)

    @contextlib.contextmanager
    def open_join_fds(self) -> Iterator[tuple[int, ...]]:
        """File descriptors: a process joins the group by writing `0` to each of them."""
        with contextlib.ExitStack() as stack:
            fds = []
            for path in self.list_members():
                fds.append(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
                stack.callback(os.close, fds[-1])
            yield tuple(fds)

    def describe_memory_kill(self) -> str:
        """A line of text if the kernel killed something in this group for using too much memory, else ''."""
        for folder in self._folders:
            for file in (folder / INNER / "memory.oom_control", folder / "memory.events"):
                with contextlib.suppress(OSError):
                    words = file.read_text().split()
                    if "oom_kill" in words and words[words.index("oom_kill") + 1] != "0":
                        limit = f"{self._memory >> 20} MiB"
                        return (
                            f"[clawdforge] probably killed for using too much memory; its limit is {limit} "
                            "(CLAWDFORGE_AGENT_MAX_MEMORY_BYTES)"
                        )
        return ""

    def remove(self) -> bool:
        """Remove the group; False while processes are left in it.

        Those are killed: nothing else found them.
        """
        gone = [remove_group(folder) for folder in self._folders if not self._shared]
        return all(gone)

    def list_members(self) -> list[Path]:
        """The files to which a process writes `0` to join, for one that is started by a shell."""
        return [folder / INNER / "cgroup.procs" for folder in self._folders]

    def end_now(self) -> None:
        """What `end` does, for a thread."""
        deadline = time.monotonic() + REMOVE_SECONDS
        while not self.remove() and time.monotonic() < deadline:
            time.sleep(REMOVE_STEP)

    async def end(self) -> None:
        """Wait for the last process to go, then remove the group.

        What takes too long is left to the next server.
        """
        for _ in range(round(REMOVE_SECONDS / REMOVE_STEP)):
            if self.remove():
                return
            await asyncio.sleep(REMOVE_STEP)


class Groups:
    """Makes the groups of one server.

    Their names contain the ids of the data folder and of the server's boot.
    """

    def __init__(
        self,
        data_dir: Path,
        boot_id: str,
        ceilings: Ceilings,
        hierarchies: tuple[Hierarchy, ...],
        reason: str,
        details: str,
    ) -> None:
        self._family = _family(folder_id(data_dir))
        self._prefix = f"{self._family}{boot_id}-"
        self._ceilings = ceilings
        self._hierarchies = hierarchies
        self.reason = reason
        """What limits agents, or why nothing does; safe to show to everybody."""

        self.details = details
        """The same with paths on this machine; for the operator."""

        bounds = {word for hierarchy in hierarchies for word in hierarchy.bounds}
        self.processes = ceilings.processes if "pids" in bounds else None
        self.memory = ceilings.memory if "memory" in bounds else None

    def make(self, spawn: str, ceilings: Ceilings | None = None) -> Group:
        """With the limits of an agent, unless others are given."""
        ceilings = ceilings or self._ceilings
        made: list[Path] = []
        try:
            for hierarchy in self._hierarchies:
                made.append(hierarchy.make(self._prefix + spawn, ceilings))  # noqa: PERF401 -- kept for the except
        except OSError:
            Group(tuple(made)).remove()
            raise
        return Group(tuple(made), ceilings.memory)

    def end_leftovers(self) -> None:
        """Kill what earlier servers of this data folder left running in their groups. Bounded in time.

        A server itself is never killed: one that has given up its lock may still be exiting.
        """
        deadline = time.monotonic() + REMOVE_SECONDS
        for hierarchy in self._hierarchies:
            for folder in self._find_leftovers(hierarchy.mount):
                if folder.name.endswith(SERVER):
                    with contextlib.suppress(OSError):
                        folder.rmdir()
                    continue
                while not remove_group(folder) and time.monotonic() < deadline:
                    time.sleep(REMOVE_STEP)

    def _find_leftovers(self, top: Path) -> Iterator[Path]:
        for here, names, _ in os.walk(top):
            for name in [name for name in names if name.startswith(self._family)]:
                names.remove(name)
                if not name.startswith(self._prefix):
                    yield Path(here, name)


def find_cgroups(data_dir: Path, boot_id: str, ceilings: Ceilings, *, dry_run: bool = False) -> Groups:
    """Find out, with a real trial, what can be limited on this machine. Blocks for a few milliseconds.

    With `dry_run` the server's own group is left unchanged; where a trial would need such a change, only
    its preconditions are checked.
    """
    found = list(_find_hierarchies())
    offered = {word for hierarchy in found for word in hierarchy.bounds}
    reasons = [f"{word}: not offered to the server's group" for word in CONTROLLERS if word not in offered]
    details = reasons.copy()
    ceilings = replace(ceilings, memory=ceilings.memory or _default_memory(found))
    name = f"clawdforge-{folder_id(data_dir)}-{boot_id}"
    made: dict[Hierarchy, Path] = {}
    untried: list[Hierarchy] = []
    for hierarchy in found:
        try:
            if not hierarchy.is_delegated() and dry_run:
                _check_delegation(hierarchy)
                untried.append(hierarchy)
                details.append(
                    f"{hierarchy}: not tried, because the server would have to change its own group"
                )
                continue
            if not hierarchy.is_delegated():
                _delegate(hierarchy, f"{name}{SERVER}")
            made[hierarchy] = hierarchy.make(
                f"{name}-try", replace(ceilings, memory=max(ceilings.memory, TRY_MEMORY))
            )
        except OSError as error:
            reasons.append(f"{hierarchy}: {error.strerror}")
            details.append(f"{hierarchy}: {error}")
    try:
        _try_to_join(Group(tuple(made.values())))
    except (OSError, subprocess.SubprocessError) as error:
        made.clear()
        reasons.append("no process could be put into a group")
        details.append(f"{reasons[-1]}: {error}")
    usable = (*made, *untried)
    versions = sorted({f"cgroup v{hierarchy.version}" for hierarchy in usable})
    words = ("; ".join([*versions, *more]) for more in (reasons, details))
    return Groups(data_dir, boot_id, ceilings, usable, *words)


def is_agents_group(pid: int, folder: str) -> bool:
    """Whether the process is in the group of an agent of this data folder (`folder_id`), of any boot."""
    try:
        names = Path(f"/proc/{pid}/cgroup").read_text().replace("\n", "/").split("/")
    except OSError:
        return False
    return any(name.startswith(_family(folder)) and not name.endswith(SERVER) for name in names)


def _family(folder: str) -> str:
    return f"clawdforge-{folder}-"


def remove_group(outer: Path) -> bool:
    """Remove the folder and all below it; False while processes are left in it. Those are killed."""
    for here, _, _ in os.walk(outer, topdown=False):
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(here)  # noqa: PTH106 -- as os.walk gives it
            except OSError as error:
                if error.errno != errno.EBUSY:
                    return False
                _kill_members(Path(here), outer.name)
                return False
    return True


def _kill_members(folder: Path, name: str) -> None:
    """A pid may be reused at any moment: hold the process first, then check that it is in the group."""
    with contextlib.suppress(OSError):
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            with open_pidfd(pid) as fd, contextlib.suppress(OSError):
                if fd is not None and _is_in(pid, name):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)


def _is_in(pid: int, name: str) -> bool:
    """Compares whole names, since another group's name may begin with this one."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return any(name in line.split("/") for line in lines)


def _try_to_join(group: Group) -> None:
    """Let a short-lived child join the group, then remove the group."""
    try:
        with group.open_join_fds() as join_fds:
            command = [sys.executable, "-I", "-S", "-c", TRY, *map(str, join_fds)]
            subprocess.run(command, pass_fds=join_fds, check=True, capture_output=True, timeout=TRY_SECONDS)
    finally:
        group.remove()


def _find_hierarchies() -> Iterator[Hierarchy]:
    """This process's own folder in each hierarchy that has a controller we need."""
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
    """Allow limits below the server's group.

    In version 2 such a group may hold no processes of its own, so the server moves into a group below,
    provided that it is alone.
    """
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


def _check_delegation(hierarchy: Hierarchy) -> None:
    """Raise what `_delegate` would raise. Only the topmost group, which has no type, may keep processes."""
    for path in (hierarchy.folder, hierarchy.control, hierarchy.members):
        if not os.access(path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if (hierarchy.folder / "cgroup.type").exists():
        _check_alone(hierarchy)


def _check_alone(hierarchy: Hierarchy) -> None:
    if set(map(int, hierarchy.members.read_text().split())) != {os.getpid()}:
        reason = "other programs are in the server's group"
        raise OSError(errno.EBUSY, reason, str(hierarchy.folder))


def _default_memory(hierarchies: list[Hierarchy]) -> int:
    """Three quarters of the memory that the server may use, so that no agent can take all of it."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for hierarchy in (hierarchy for hierarchy in hierarchies if "memory" in hierarchy.bounds):
        name = "memory.limit_in_bytes" if hierarchy.version == 1 else "memory.max"
        for folder in (hierarchy.folder, *hierarchy.folder.parents):
            with contextlib.suppress(OSError, ValueError):
                most = min(most, int((folder / name).read_text()))
    return most * 3 // 4
