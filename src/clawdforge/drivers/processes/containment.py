"""Contains agents: finds out which level of containment works on this machine, and wraps commands in it.

With `bwrap` an agent has its own PID namespace: it sees only its own processes, all of them end with the
first one, and that one ends with the server. Shared memory, queues and semaphores are its own as well.
Of the file system it sees what `mounts.py` lists and nothing else: the system's programs, what its own
program needs (`runtimes.py`), its home, workspace and /tmp. There is no /sys, so that no agent can leave the
group that limits it (`cgroups.py`).

Without bwrap a keeper process ends the agent's whole process tree. Where Landlock works (`landlock`), the
agent can use the system's programs and its own folders and no other files, and where its scopes work too, it
can signal nobody else. Where it does not (`tree`), that is enough for a faulty program, but not for one that
tries to escape: it can kill its keeper, read the data folder and signal every process of its user.

Inside of each level but `tree` stand the walls of `walls.py`. `harden_self` hides the server's memory and
environment from agents of the same user, but not from root: where the server runs as root, only the namespace
and Landlock protect it.

`auto` takes the strongest that works, and `full` insists on bwrap.
"""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from clawdforge.drivers.processes import landlock, launcher
from clawdforge.drivers.processes.etc_links import find_linked_settings
from clawdforge.drivers.processes.launching import EXECUTABLE, SOURCE, find_command
from clawdforge.drivers.processes.mounts import (
    SHARED_MEMORY,
    AgentFolders,
    Mount,
    list_arguments,
    list_exposed,
    plan_base,
    plan_mounts,
)
from clawdforge.drivers.processes.runtimes import find_servers_own
from clawdforge.drivers.processes.survivors import Tag, tag_environment
from clawdforge.drivers.processes.users import User
from clawdforge.drivers.processes.walls import NO_WALLS, ROOT_KEEPS, Walls, find_walls
from clawdforge.wire.errors import AgentStartFailed

Level = Literal["auto", "full", "off"]
Active = Literal["bwrap", "bwrap-full", "landlock", "tree"]
NAMESPACES: Final = ("bwrap", "bwrap-full")

CODE = (SOURCE.parents[2], Path(sys.prefix).resolve())
"""Our package, and the environment that it is installed in."""

PROBE = "import os; print(os.getppid())"
PROBE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of each agent process. Zero leaves a limit unchanged."""

    nofile: int = 65_536
    nproc: int = 16_384  # the kernel counts all processes of the user, so this only stops extremes
    fsize: int = 0


@dataclass(frozen=True, slots=True)
class Containment:
    """The level that was asked for, what is active because of it, and why."""

    level: Level
    active: Active
    reason: str
    bwrap: str | None = None
    base: tuple[Mount, ...] = field(default=(), repr=False)  # what every agent sees
    walls: Walls = NO_WALLS
    uid: bool = False  # whether each app has a user of its own; see `user_wall.py`
    why_no_users: str | None = None  # where one was asked for and does not work

    @property
    def wall_names(self) -> tuple[str, ...]:
        """Every wall around an agent with the server's own setting, as `GET /healthz` shows them."""
        if self.active == "tree":
            return ("no_new_privs",)
        outer = ("namespaces", *(("uid",) if self.uid else ())) if self.active in NAMESPACES else ()
        return (*outer, *self.walls.names)

    def choose(self, sandbox: str | None) -> Active:
        """The containment of one agent.

        Its own setting wins over the server's; `full` is never weakened silently.
        """
        level = sandbox or self.level
        if level not in ("auto", "full", "off"):
            raise AgentStartFailed(f"sandbox {level!r} is unknown; use auto, full or off")
        if level == "full" and self.bwrap is None:
            raise AgentStartFailed(
                f"sandbox full needs bwrap ({self.reason}); install bubblewrap or use auto"
            )
        if level == "off":
            return "tree"
        if self.bwrap is None:
            return "landlock" if self.walls.files else "tree"
        return "bwrap-full" if level == "full" else "bwrap"

    def describe_lack(self) -> str:
        """What it means that bwrap does not work, in words for the operator."""
        if self.level == "full":
            return (
                f"no agent can be started: CLAWDFORGE_SANDBOX is full, but {self.reason}; install bubblewrap"
            )
        if self.active == "landlock":
            return (
                f"agents see other processes and the names of all files: {self.reason}. Install bubblewrap;"
                " or set CLAWDFORGE_SANDBOX=full, which starts no agent without it"
            )
        return (
            f"agents are not contained, they can read and write whatever this user can: {self.reason}. "
            "Install bubblewrap; or set CLAWDFORGE_SANDBOX=full, which starts no agent without it"
        )

    def wrap(
        self,
        command: Sequence[str],
        *,
        folders: AgentFolders,
        status_fd: int,
        limits: Limits,
        sources: Mapping[Path, str] = MappingProxyType({}),
        join_fds: Sequence[int] = (),
        sandbox: str | None = None,
        allows: Sequence[str] = (),
        own_network: bool = False,
        listen: str | None = None,
        user: User | None = None,
    ) -> list[str]:
        """The command line that runs a command contained. `command[0]` is an absolute path.

        `sources` says under which name a folder is mounted that is held open, and from which descriptor a
        file is copied. The agent joins its group by writing to `join_fds`. `allows` is what its filter of
        system calls leaves open. With a network of its own, `listen` is where the server answers in it, as
        the launcher takes it. `user` is whom the agent becomes in its namespace; None leaves it the server's.
        """
        active = self.choose(sandbox)
        numbers = [str(n) for n in (status_fd, limits.nofile, limits.nproc, limits.fsize)]
        numbers.append(",".join(map(str, join_fds)) or "-")
        mode = "exec" if active in NAMESPACES else "keep"
        mounts = self.list_mounts(folders)
        if active == "landlock" and list_exposed(folders, CODE):
            raise AgentStartFailed(
                "the server's own code lies in a folder that this agent may write, and only bubblewrap could"
                " keep it from changing that; install bubblewrap, or work in another folder"
            )
        program = find_command()
        if program[-1] != str(SOURCE):
            mounts.append(Mount(Path(program[-1]), "read-only", "prepares the agent's process"))
        if user is not None:  # bwrap makes it for root alone
            mounts.append(Mount(SHARED_MEMORY, "empty", "its own shared memory"))
        walls = _compare(mounts, sources) if active in NAMESPACES else []
        walls += [] if listen is None else [f"listen={listen}"]
        if active != "tree":
            hidden = folders.data_dir.resolve()
            access = _access(active, mounts, sources, hidden, allows) if self.walls.files else None
            walls += self.walls.words(access, allows, user, sees_others=active not in NAMESPACES)
        launched = [*program, mode, *numbers, *walls, "--", *command]
        if active not in NAMESPACES or self.bwrap is None:
            return launched
        network = ["--unshare-net"] if own_network else []
        return [self.bwrap, *network, *_arguments(mounts, folders, sources), "--", *launched]

    def list_mounts(self, folders: AgentFolders) -> list[Mount]:
        """Everything that an agent with these folders sees in a sandbox."""
        return plan_mounts(folders, self.base, CODE)


def probe(level: Level, *, bwrap: str = "bwrap", tag: Tag | None = None) -> Containment:
    """Find out with a real run what works here. Blocks for a few milliseconds; call it once, at the start.

    By the `tag`, the next server finds what is left of the run where this one is killed meanwhile.
    """
    path, base = shutil.which(bwrap), _plan_base()
    if level == "off" and path is None:
        return Containment(level, "tree", "switched off", base=base)
    if path is None:
        return Containment(level, "tree", "bwrap is not installed", base=base)
    try:
        with tempfile.TemporaryDirectory(prefix="clawdforge-") as folder:
            here = Path(folder).resolve()
            folders = AgentFolders(data_dir=here, home=here, workspace=here)
            with reaping_first() as info:
                arguments = [*_arguments(plan_mounts(folders, base), folders, {}), "--info-fd", str(info)]
                done = subprocess.run(
                    [path, *arguments, "--", str(EXECUTABLE), "-I", "-S", "-c", PROBE],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=PROBE_SECONDS,
                    check=False,
                    env=tag_environment(tag),
                    pass_fds=[info],
                )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Containment(level, "tree", f"bwrap does not work here: {error}", base=base)
    if done.returncode != 0 or done.stdout.strip() != b"1":
        words = done.stderr.decode(errors="replace").strip()[-200:] or f"exit code {done.returncode}"
        return Containment(level, "tree", f"bwrap does not work here: {words}", base=base)
    if level == "off":
        return Containment(level, "tree", "switched off", path, base)
    return Containment(level, "bwrap-full" if level == "full" else "bwrap", "a probe run worked", path, base)


def find_containment(level: Level, *, bwrap: str = "bwrap", tag: Tag | None = None) -> Containment:
    """The strongest that works here, each part of it tried. Blocks for some 50 ms; call it at the start."""
    with ThreadPoolExecutor(1, thread_name_prefix="trying walls") as beside:  # either waits for programs
        walls = beside.submit(find_walls)
        found = replace(probe(level, bwrap=bwrap, tag=tag), walls=walls.result())
    if level == "auto" and found.choose(None) == "landlock":
        return replace(found, active="landlock", reason=f"{found.reason}; Landlock holds")
    return found


def _access(
    active: Active,
    mounts: Sequence[Mount],
    sources: Mapping[Path, str],
    hidden: Path,
    allows: Sequence[str],
) -> landlock.Access | None:
    """The rights over files that equal what is mounted, or would be.

    Nobody can mount behind Landlock, so it leaves the files of an agent that may do so to its namespace.
    Where it is the only wall, it stays.
    """
    if active not in NAMESPACES:
        return landlock.without_namespace(mounts, sources, hidden)
    return None if "namespaces" in allows else landlock.inside_namespace(mounts)


def _compare(mounts: Sequence[Mount], sources: Mapping[Path, str]) -> list[str]:
    """What the launcher compares inside: all that is mounted by a descriptor and covered by nothing else."""
    last = {mount.path: mount for mount in mounts}
    binds = ((path, mount.target) for path, mount in last.items() if mount.is_bind)
    held = ((path, sources.get(Path(target) if target else path)) for path, target in binds)
    return [f"same={Path(source).name}:{path}" for path, source in held if source is not None]


@contextlib.contextmanager
def reaping_first() -> Iterator[int]:
    """A descriptor for `--info-fd`. A sandbox's first process outlives bwrap, and is left to a subreaper.

    Where bwrap was killed before it let that process begin, it would wait for ever; so it is killed too.
    """
    info, told = os.pipe()
    try:
        yield told
    finally:
        os.close(told)
        with open(info, "rb") as said:  # noqa: PTH123 - a descriptor
            words = said.read()
        with contextlib.suppress(ValueError, KeyError, ChildProcessError):
            first = json.loads(words)["child-pid"]
            os.waitid(os.P_PID, first, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # fails if it is not ours
            os.kill(first, signal.SIGKILL)
            os.waitpid(first, 0)


def harden_self() -> None:
    """Protect the server's own process; call it at the start. It writes no core files.

    "Dumpable 0" makes /proc/<server>/environ and /proc/<server>/mem unreadable to other processes of the same
    user; root can still read them. As a subreaper, the server inherits the orphans of a keeper that was
    killed.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    launcher.prctl(launcher.PR_SET_DUMPABLE, 0)
    launcher.prctl(launcher.PR_SET_CHILD_SUBREAPER, 1)


def _plan_base() -> tuple[Mount, ...]:
    return plan_base((*find_servers_own(EXECUTABLE, SOURCE), *find_linked_settings()))


def _arguments(mounts: Sequence[Mount], folders: AgentFolders, sources: Mapping[Path, str]) -> list[str]:
    out = ["--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    if os.geteuid() == 0:
        out += ["--cap-drop", "ALL"]
        for name in ROOT_KEEPS:
            out += ["--cap-add", name]
    out += list_arguments(mounts, sources)
    return [*out, "--chdir", str(folders.workspace)]
