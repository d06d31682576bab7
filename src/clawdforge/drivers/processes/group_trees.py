"""The kernel's trees of control groups: where this server stands in them, and groups with limits below it."""

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clawdforge.drivers.processes.survivors import open_pidfd

CONTROLLERS = ("pids", "memory")
SHARED = "cpu"
"""Used where it is offered. It refuses an agent nothing, so nobody has to be told where it is missing."""

WEIGHTS = {1: ("cpu.shares", "256"), 2: ("cpu.weight", "25")}
"""Where processors are short: a quarter of what the server has, for all agents of an app together. Without a
weight of its own, every session of processes that an agent starts has as much as the whole server (the
kernel's autogroups)."""

INNER = "agent"
STARTING = "starting"
"""Where the programs of an app are while they are started: what that takes is its app's, and not limited."""

FAMILY = "-app-"
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

    @property
    def limiting(self) -> frozenset[str]:
        """Those of its controllers that limit."""
        return self.bounds - {SHARED}

    def is_delegated(self) -> bool:
        """Whether groups with limits can be made below this folder without changing anything first."""
        return self.version == 1 or self.limiting <= set(self.control.read_text().split())

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

    def make(self, name: str, ceilings: Ceilings, family: Path | None = None) -> Path:
        outer = (family or self.folder) / name
        outer.mkdir()
        try:
            for file, value in self.limits(ceilings):
                if file not in OPTIONAL or (outer / file).exists():
                    (outer / file).write_text(value)
            if SHARED in self.bounds:
                name, weight = WEIGHTS[self.version]
                with contextlib.suppress(
                    OSError
                ):  # it must not cost the limits where it cannot be shared out
                    (outer / name).write_text(weight)
            (outer / INNER).mkdir()
        except OSError:
            remove_group(outer)
            raise
        return outer

    def open_family(self, name: str) -> Path | None:
        """The folder of all groups of one app, or None where it cannot be had."""
        family = self.folder / name
        if SHARED not in self.bounds:
            return None
        try:
            family.mkdir(exist_ok=True)
            file, weight = WEIGHTS[self.version]
            (family / file).write_text(weight)
            if self.version == 2:
                words = " ".join(f"+{word}" for word in sorted(self.bounds))
                (family / "cgroup.subtree_control").write_text(words)
            (family / STARTING).mkdir(exist_ok=True)
        except OSError:
            remove_family(family)
            return None
        return family


def remove_family(family: Path) -> None:
    """Remove an app's folder if nothing is in it any more. Who has a group there may be about to start."""
    with contextlib.suppress(OSError), os.scandir(family) as found:
        if any(each.name != STARTING and each.is_dir(follow_symlinks=False) for each in found):
            return
    with contextlib.suppress(OSError):
        (family / STARTING).rmdir()
    with contextlib.suppress(OSError):
        family.rmdir()


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


def find_hierarchies() -> Iterator[Hierarchy]:
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
            bounds = wanted.intersection({*CONTROLLERS, SHARED})
            if bounds and folder.is_relative_to(SYS):
                yield Hierarchy(version, Path(mount), folder, frozenset(bounds))
                break


def delegate(hierarchy: Hierarchy, leaf: str) -> None:
    """Allow limits below the server's group.

    In version 2 such a group may hold no processes of its own, so the server moves into a group below,
    provided that it is alone.
    """
    order = " ".join(f"+{word}" for word in sorted(hierarchy.limiting))
    try:
        hierarchy.control.write_text(order)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        _check_alone(hierarchy)
        (hierarchy.folder / leaf).mkdir()
        (hierarchy.folder / leaf / "cgroup.procs").write_text(str(os.getpid()))
        hierarchy.control.write_text(order)
    with contextlib.suppress(OSError):  # where there are programs of real time it cannot be shared out
        hierarchy.control.write_text(f"+{SHARED}")


def check_delegation(hierarchy: Hierarchy) -> None:
    """Raise what `delegate` would raise. Only the topmost group, which has no type, may keep processes."""
    for path in (hierarchy.folder, hierarchy.control, hierarchy.members):
        if not os.access(path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if (hierarchy.folder / "cgroup.type").exists():
        _check_alone(hierarchy)


def _check_alone(hierarchy: Hierarchy) -> None:
    if set(map(int, hierarchy.members.read_text().split())) != {os.getpid()}:
        reason = "other programs are in the server's group"
        raise OSError(errno.EBUSY, reason, str(hierarchy.folder))
