"""Contains agents: finds out which level of containment works on this machine, and wraps commands in it.

With `bwrap` an agent has its own PID namespace: it sees only its own processes, all of them end with the
first one, and that one ends with the server. The data folder is covered by an empty one; the session's own
home, workspace and files are mounted back in. /sys is read-only, so that no agent can leave the group that
limits it (`cgroups.py`). `full` also makes the rest of the file system read-only and gives the agent a
private /tmp.

Without bwrap (`tree`) a keeper process ends the agent's whole process tree. That is enough for a faulty
program, but not for one that tries to escape: it can kill its keeper, read the data folder and signal every
process of its user. `harden_self` hides the server's memory and environment from agents of the same user, but
not from root: where the server runs as root, only the namespace protects it.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from clawdforge.drivers.processes import launcher
from clawdforge.wire.errors import AgentStartFailed

Level = Literal["auto", "full", "off"]
Active = Literal["bwrap", "bwrap-full", "tree"]

PROBE_SECONDS = 10.0
# As root an agent keeps what working with files of other users needs. It must not have SYS_ADMIN (it could
# unmount the empty folder over our data), MKNOD, SYS_PTRACE, SYS_RAWIO, DAC_READ_SEARCH and the like.
ROOT_CAPABILITIES = (
    *("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL"),
    *("CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of each agent process. Zero leaves a limit unchanged."""

    nofile: int = 65_536
    nproc: int = 16_384  # the kernel counts all processes of the user, so this only stops extremes
    fsize: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolders:
    """The folders that one agent process may use, and those that are hidden from it."""

    data_dir: Path
    home: Path
    workspace: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    private_tmp: bool = False  # `full` has one always


@dataclass(frozen=True, slots=True)
class Containment:
    """The level that was asked for, what is active because of it, and why."""

    level: Level
    active: Active
    reason: str
    bwrap: str | None = None

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
        if level == "off" or self.bwrap is None:
            return "tree"
        return "bwrap-full" if level == "full" else "bwrap"

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
    ) -> list[str]:
        """The command line that runs a command contained. `command[0]` is an absolute path.

        `sources` says under which name a folder is mounted that is held open. The agent joins its group by
        writing to `join_fds`.
        """
        active = self.choose(sandbox)
        numbers = [str(n) for n in (status_fd, limits.nofile, limits.nproc, limits.fsize)]
        numbers.append(",".join(map(str, join_fds)) or "-")
        mode = "keep" if active == "tree" else "exec"
        launched = [sys.executable, "-I", "-S", launcher.__file__, mode, *numbers, "--", *command]
        if active == "tree" or self.bwrap is None:
            return launched
        return [self.bwrap, *_arguments(active, folders, sources), "--", *launched]


def probe(level: Level, *, bwrap: str = "bwrap") -> Containment:
    """Find out with a real run what works here. Blocks for a few milliseconds; call it once, at the start."""
    path = shutil.which(bwrap)
    if level == "off" and path is None:
        return Containment(level, "tree", "switched off")
    if path is None:
        return Containment(level, "tree", "bwrap is not installed")
    try:
        with tempfile.TemporaryDirectory(prefix="clawdforge-") as folder:
            here = Path(folder).resolve()
            arguments = _arguments("bwrap", AgentFolders(data_dir=here, home=here, workspace=Path("/")), {})
            done = subprocess.run(
                [path, *arguments, "--", sys.executable, "-I", "-S", "-c", "import os; print(os.getppid())"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Containment(level, "tree", f"bwrap does not work here: {error}")
    if done.returncode != 0 or done.stdout.strip() != b"1":
        words = done.stderr.decode(errors="replace").strip()[-200:] or f"exit code {done.returncode}"
        return Containment(level, "tree", f"bwrap does not work here: {words}")
    if level == "off":
        return Containment(level, "tree", "switched off", path)
    return Containment(level, "bwrap-full" if level == "full" else "bwrap", "a probe run worked", path)


def harden_self() -> None:
    """Protect the server's own process; call it at the start. It writes no core files.

    "Dumpable 0" makes /proc/<server>/environ and /proc/<server>/mem unreadable to other processes of the same
    user; root can still read them. As a subreaper, the server inherits the orphans of a keeper that was
    killed.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    launcher.prctl(launcher.PR_SET_DUMPABLE, 0)
    launcher.prctl(launcher.PR_SET_CHILD_SUBREAPER, 1)


def _arguments(active: Active, folders: AgentFolders, sources: Mapping[Path, str]) -> list[str]:
    full = active == "bwrap-full"
    root = os.geteuid() == 0
    # Root could read the disk itself through the real /dev; others are kept out of it by its modes.
    dev = ("--dev", "/dev") if full or root else ("--dev-bind", "/dev", "/dev")
    out = ["--unshare-pid", "--die-with-parent", "--ro-bind" if full else "--bind", "/", "/"]
    out += ["--ro-bind", "/sys", "/sys", "--proc", "/proc", *dev]
    if root:
        out += ["--cap-drop", "ALL"]
        for name in ROOT_CAPABILITIES:
            out += ["--cap-add", name]
    for mount in _mounts(folders, sources, full=full):
        out += mount
    return [*out, "--chdir", str(folders.workspace)]


def _mounts(folders: AgentFolders, sources: Mapping[Path, str], *, full: bool) -> list[tuple[str, ...]]:
    """Parents first: a mask inside a mounted folder must hide, a folder mounted inside a mask must show."""
    masked = [folders.data_dir.resolve()]
    if full or folders.private_tmp:
        masked.append(Path("/tmp").resolve())  # noqa: S108 -- replaced by a private one
    masked = [path for path in masked if path.exists()]
    own = dict.fromkeys((folders.home, folders.workspace, *folders.writable), "--bind")
    needed = (Path(launcher.__file__), Path(sys.prefix), Path(sys.base_prefix))
    for path in (*folders.readable, *needed):
        own.setdefault(path.resolve(), "--ro-bind")
    steps: list[tuple[int, int, tuple[str, ...]]] = [
        (len(path.parts), 0, ("--tmpfs", str(path))) for path in masked
    ]
    for path, how in own.items():
        inside = any(path.is_relative_to(mask) for mask in masked)
        if (inside or (full and how == "--bind")) and path.exists():
            steps.append((len(path.parts), 1, (how, sources.get(path, str(path)), str(path))))
    return [mount for *_, mount in sorted(steps)]
