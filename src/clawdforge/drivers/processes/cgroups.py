"""Limits how many processes, how much memory and which part of the processors one agent may use, by cgroups.

Each agent's group is made below the server's own, in cgroup version 1 and 2 alike, so limits on the server
also apply to its agents. Those of one app share its part of the processors, from the first moment of their
start on: many of them get no more than one. The limits are written to the outer of two folders and the agent
is put into the inner one: even from namespaces of its own, an agent can reach only what is below the limits,
never the limits.

Whether this works is tried for real when the server starts. Where it does not, agents run without these
limits.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes.group_trees import (
    CONTROLLERS,
    FAMILY,
    INNER,
    STARTING,
    Ceilings,
    Hierarchy,
    check_delegation,
    delegate,
    find_hierarchies,
    remove_family,
    remove_group,
)
from clawdforge.drivers.processes.survivors import folder_id

OURS = "clawdforge-"
SERVER = "-server"  # suffix of the group that a server moves itself into
TRY = "import os, sys\nfor fd in sys.argv[1:]: os.write(int(fd), b'0')"
TRY_SECONDS = 10.0
# The trial run gets at least this much. A limit too small for Python must show when agents start; it must not
# make the trial fail and leave agents without any limit.
TRY_MEMORY = 64 << 20
REMOVE_SECONDS = 2.0
REMOVE_STEP = 0.01
ENDERS = 2  # threads
TRIES = 5

SHELL: Final = "/bin/sh"
PASSED_ON: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Names of variables that every shell passes on; dash drops others."""

JOINED: Final = (
    *(SHELL, "-c"),
    'while [ "$1" ]; do echo 0 >"$1" || exit 1; shift; done; shift; exec "$@"',
    "sh",
)
"""Joins the groups whose files are the next words, up to an empty one, before the command begins."""

STARTED: Final = (
    *(SHELL, "-c"),
    'while [ "$1" ]; do { echo 0 >"$1"; echo 0 >"$1"; } 2>/dev/null; shift; done; shift; exec "$@"',
    "sh",
)
"""The same where that is no condition of the start: it shares out processors, and limits nothing.

Twice: who joins a group waits for a grace period of the kernel, some 10 ms, unless somebody else has just
done so. After the second time that holds for twice as long: until the agent joins its own, 15 to 20 ms later.
"""


class Group:
    """The group of one agent: a folder in each hierarchy, or none at all.

    A `shared` one belongs to another process, which removes it; it can only be joined.
    """

    def __init__(
        self,
        folders: tuple[Path, ...] = (),
        memory: int = 0,
        families: tuple[Path, ...] = (),
        *,
        shared: bool = False,
        enders: Executor | None = None,
    ) -> None:
        """`enders` are the threads in which it ends."""
        self._folders = folders
        self._memory = memory
        self._families = families
        self._shared = shared
        self._enders = enders
        self._last_note: str | None = None

    def share(self) -> "Group":
        """The same group, for a program that runs on the agent's behalf and counts towards its limits."""
        return Group(self._folders, self._memory, self._families, shared=True, enders=self._enders)

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
        """A line of text if the kernel killed something in this group for using too much memory, else ''.

        After the end of the group it is what was true then.
        """
        return self._read_memory_kill() if self._last_note is None else self._last_note

    def _read_memory_kill(self) -> str:
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
        for family in () if self._shared else self._families:
            remove_family(family)
        return all(gone)

    def put_first(self, command: Sequence[str], env: Iterable[str]) -> list[str]:
        """The command, started where its app's programs are started, if a shell can do that.

        `env` are the names of the command's variables.
        """
        places = [str(family / STARTING / "cgroup.procs") for family in self._families]
        if not places or not os.access(SHELL, os.X_OK) or not all(map(PASSED_ON.fullmatch, env)):
            return [*command]
        return [*STARTED, *places, "", *command]

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

        What takes too long is left to the next server. In a thread: to remove a folder of groups takes locks
        of the kernel, which whoever starts and ends many makes everybody wait for.
        """
        if not self._folders or self._shared:
            return
        loop = asyncio.get_running_loop()
        self._last_note = await loop.run_in_executor(self._enders, self._read_memory_kill)
        for _ in range(round(REMOVE_SECONDS / REMOVE_STEP)):
            if await loop.run_in_executor(self._enders, self.remove):
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
        self._making = threading.Lock()  # helpers are started by threads
        self._enders = ThreadPoolExecutor(ENDERS, thread_name_prefix="ending groups")
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

    def make(self, spawn: str, ceilings: Ceilings | None = None, *, app: str | None = None) -> Group:
        """With the limits of an agent, unless others are given. Outside of its app's folder, if need be."""
        name, ceilings = self._prefix + spawn, ceilings or self._ceilings
        with self._making:
            for _ in range(TRIES if app is not None else 0):
                try:
                    return self._make(name, ceilings, app)
                except FileNotFoundError:
                    continue  # the app's folder went with its last group
                except OSError:
                    break  # such as where no more folders may lie in each other
            return self._make(name, ceilings, None)

    def _make(self, name: str, ceilings: Ceilings, app: str | None) -> Group:
        made: list[Path] = []
        families: list[Path] = []
        try:
            for hierarchy in self._hierarchies:
                family = None if app is None else hierarchy.open_family(self._name_family(app))
                families += [] if family is None else [family]
                made.append(hierarchy.make(name, ceilings, family))
        except OSError:
            Group(tuple(made), families=tuple(families)).remove()
            raise
        return Group(tuple(made), ceilings.memory, tuple(families), enders=self._enders)

    def _name_family(self, app: str) -> str:
        return f"{self._prefix.removesuffix('-')}{FAMILY}{hashlib.sha256(app.encode()).hexdigest()[:16]}"

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
            # Killed servers of other folders may have left thousands; to look into them held up every start.
            names[:] = [name for name in names if not name.startswith(OURS)]


def find_cgroups(data_dir: Path, boot_id: str, ceilings: Ceilings, *, dry_run: bool = False) -> Groups:
    """Find out, with a real trial, what can be limited on this machine. Blocks for a few milliseconds.

    With `dry_run` the server's own group is left unchanged; where a trial would need such a change, only
    its preconditions are checked.
    """
    found = list(find_hierarchies())
    offered = {word for hierarchy in found for word in hierarchy.bounds}
    reasons = [f"{word}: not offered to the server's group" for word in CONTROLLERS if word not in offered]
    details = reasons.copy()
    ceilings = replace(ceilings, memory=ceilings.memory or _default_memory(found))
    name = f"{OURS}{folder_id(data_dir)}-{boot_id}"
    made: dict[Hierarchy, Path] = {}
    untried: list[Hierarchy] = []
    for hierarchy in found:
        try:
            if not hierarchy.is_delegated() and dry_run:
                check_delegation(hierarchy)
                untried.append(hierarchy)
                details.append(
                    f"{hierarchy}: not tried, because the server would have to change its own group"
                )
                continue
            if not hierarchy.is_delegated():
                delegate(hierarchy, f"{name}{SERVER}")
            made[hierarchy] = hierarchy.make(
                f"{name}-try", replace(ceilings, memory=max(ceilings.memory, TRY_MEMORY))
            )
        except OSError as error:
            if hierarchy.limiting:
                reasons.append(f"{hierarchy}: {error.strerror}")
                details.append(f"{hierarchy}: {error}")
    limiting = {each: folder for each, folder in made.items() if each.limiting}
    sharing = [folder for each, folder in made.items() if not each.limiting]
    with ThreadPoolExecutor(1, thread_name_prefix="trying groups") as beside:  # to join one is to wait
        can_share = beside.submit(_can_be_joined, sharing)
        try:
            _try_to_join(Group(tuple(limiting.values())))
        except (OSError, subprocess.SubprocessError) as error:
            limiting.clear()
            made.clear()
            reasons.append("no process could be put into a group")
            details.append(f"{reasons[-1]}: {error}")
        made = made if can_share.result() else limiting
    usable = (*made, *untried)
    versions = sorted({f"cgroup v{hierarchy.version}" for hierarchy in usable if hierarchy.limiting})
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
    return f"{OURS}{folder}-"


def _can_be_joined(folders: Iterable[Path]) -> bool:
    """Whether what only shares out can be used; it must not cost the limits where it cannot."""
    group = Group(tuple(folders))
    try:
        if group.list_members():
            _try_to_join(group)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _try_to_join(group: Group) -> None:
    """Let a short-lived child join the group, then remove the group."""
    try:
        with group.open_join_fds() as join_fds:
            command = [sys.executable, "-I", "-S", "-c", TRY, *map(str, join_fds)]
            subprocess.run(command, pass_fds=join_fds, check=True, capture_output=True, timeout=TRY_SECONDS)
    finally:
        group.remove()


def _default_memory(hierarchies: list[Hierarchy]) -> int:
    """Three quarters of the memory that the server may use, so that no agent can take all of it."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for hierarchy in (hierarchy for hierarchy in hierarchies if "memory" in hierarchy.bounds):
        name = "memory.limit_in_bytes" if hierarchy.version == 1 else "memory.max"
        for folder in (hierarchy.folder, *hierarchy.folder.parents):
            with contextlib.suppress(OSError, ValueError):
                most = min(most, int((folder / name).read_text()))
    return most * 3 // 4
