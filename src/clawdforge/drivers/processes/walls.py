"""The walls that stand inside an agent's own process: found out by attempts to get through, never assumed."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes import landlock
from clawdforge.drivers.processes.landlock import Access
from clawdforge.drivers.processes.launching import find_command
from clawdforge.drivers.processes.seccomp import NoFilter, build_filter
from clawdforge.drivers.processes.users import User

PROBE_SECONDS: Final = 10.0

ROOT_KEEPS: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
}
"""It must not have SYS_ADMIN (it could unmount the empty folder over our data), MKNOD, SYS_PTRACE, PERFMON
(it could read the server's memory), SYS_RAWIO, DAC_READ_SEARCH, FSETID (it could fill a set-uid file) and the
like."""

TRY_CALLS: Final = """
import ctypes
ctypes.CDLL(None, use_errno=True).ioctl(-1, 0x5412, None)
print(ctypes.get_errno() == 1)
"""
"""Without the filter that is a bad descriptor; with it, a call that is not permitted."""

TRY_FILES: Final = """
import os, sys
refused = 0
for path, mode in ((sys.argv[1], "r+"), (f"/proc/{os.getppid()}/environ", "r")):
    try:
        open(path, mode).read(1)
    except PermissionError:
        refused += 1
print(refused == 2)
"""

TRY_SCOPES: Final = """
import os, socket, sys
refused = 0
try:
    os.kill(os.getppid(), 0)
except PermissionError:
    refused += 1
try:
    socket.socket(socket.AF_UNIX).connect(chr(0) + sys.argv[1])
except PermissionError:
    refused += 1
print(refused == 2)
"""


@dataclass(frozen=True, slots=True)
class Walls:
    """Which of them hold on this machine. `version` is that of Landlock."""

    seccomp: bool = False
    files: bool = False
    scopes: bool = False
    version: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """As `GET /healthz` and `doctor` show them. Nothing can be gained by a set-uid program anywhere."""
        found = {"seccomp": self.seccomp, "landlock": self.files, "landlock_scopes": self.scopes}
        return ("no_new_privs", *(name for name, holds in found.items() if holds))

    def words(
        self,
        access: Access | None,
        allows: Sequence[str],
        user: User | None = None,
        *,
        sees_others: bool = False,
    ) -> list[str]:
        """What the launcher is told to put up around one agent."""
        identity = keep_powers() if user is None else [f"user={user.uid}:{user.gid}"]
        words = [*identity, *landlock.build_words(self.version, access, scopes=self.scopes)]
        calls = build_filter(allows, sees_others=sees_others) if self.seccomp else b""
        return [*words, f"filter={calls.hex()}"] if calls else words


NO_WALLS: Final = Walls()


def keep_powers() -> list[str]:
    """Root keeps what working with files of other users needs, and nothing that reaches past a wall."""
    return [f"powers={sum(1 << number for number in ROOT_KEEPS.values())}"] if os.geteuid() == 0 else []


def find_walls() -> Walls:
    """Try each wall in a process of its own. Blocks for some 50 ms; call it once, at the start."""
    version = landlock.read_version()
    reasons: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clawdforge-"))).resolve()
        target = folder / "target"
        target.touch()
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(f"\0{target}")
        listener.listen(1)
        try:
            calls = [f"filter={build_filter().hex()}"]
        except NoFilter as error:
            calls, reasons["seccomp"] = [], str(error)
        files = landlock.build_words(version, Access({"/": landlock.READ}), scopes=False)
        files = [*keep_powers(), *files] if files else []
        scopes = landlock.build_words(version, None)
        if not files:
            reasons["landlock"] = "this kernel has no Landlock, or an early one"
        if not scopes:
            reasons["landlock_scopes"] = "it needs Linux 6.12"
        tries = {
            "seccomp": (calls, TRY_CALLS),
            "landlock": (files, TRY_FILES),
            "landlock_scopes": (scopes, TRY_SCOPES),
        }
        running = {name: _start(*row, str(target)) for name, row in tries.items() if row[0]}
        holds = {name: _holds(child, name, reasons) for name, child in running.items()}
    return Walls(
        seccomp=holds.get("seccomp", False),
        files=holds.get("landlock", False),
        scopes=holds.get("landlock_scopes", False),
        version=version,
        reasons=tuple(f"{name}: {reason}" for name, reason in reasons.items()),
    )


def _start(words: Sequence[str], attempt: str, target: str) -> subprocess.Popen[bytes]:
    """The same launcher with the same words as for an agent."""
    status = os.open(os.devnull, os.O_WRONLY)
    try:
        python = (sys.executable, "-I", "-S")
        launched = (*find_command(), "exec", str(status), "0", "0", "0", "-", *words, "--")
        return subprocess.Popen(
            [*launched, *python, "-c", attempt, target],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[status],
        )
    finally:
        os.close(status)


def _holds(child: subprocess.Popen[bytes], name: str, reasons: dict[str, str]) -> bool:
    with child:
        try:
            out, words = child.communicate(timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            reasons[name] = "the attempt took too long"
            return False
    if out.strip() != b"True":
        reasons[name] = words.decode(errors="replace").strip()[-200:] or "the attempt got through"
        return False
    return True
