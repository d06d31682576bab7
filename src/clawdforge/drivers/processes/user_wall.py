"""Finds out whether agents can run as users of their own, by a real run that tries to get out of one."""

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes.containment import (
    NAMESPACES,
    PROBE_SECONDS,
    Containment,
    Limits,
    reaping_first,
)
from clawdforge.drivers.processes.launching import EXECUTABLE
from clawdforge.drivers.processes.mounts import AgentFolders
from clawdforge.drivers.processes.survivors import Tag, tag_environment
from clawdforge.drivers.processes.users import Numbers, User

TRY: Final = """
import os, sys
own, other, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
open(own + "/file", "w").close()
refused = 0
for attempt in (lambda: os.listdir(other), lambda: os.setuid(0), lambda: os.chown(own, 0, 0)):
    try:
        attempt()
    except PermissionError:
        refused += 1
said = open("/proc/self/status").read().split()
powers = [said[said.index(name + ":") + 1] for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")]
same = {os.getuid(), os.geteuid(), os.getgid(), os.getegid(), uid} == {uid} and not os.getgroups()
print(refused == 3 and same and not any(int(power, 16) for power in powers))
"""


def try_users(found: Containment, setting: str, data_dir: Path, *, tag: Tag | None = None) -> Containment:
    """The containment with `uid` set if each app can have a user of its own here, else with the reason.

    `setting` is that of the operator: `auto`, `off` or FIRST-LAST. Blocks for some 50 ms; call it at the
    start. Where the server is not root, `auto` does not ask for it and there is nothing to explain.
    """
    if setting == "off" or found.active not in NAMESPACES:
        return found
    if os.geteuid() != 0:
        return found if setting == "auto" else _lacks(found, "it needs a server that runs as root")
    numbers = Numbers.parse(setting, data_dir)
    if not (_is_mapped("uid_map", numbers) and _is_mapped("gid_map", numbers)):
        return _lacks(
            found,
            f"the users {numbers.first}-{numbers.last} do not exist in this container; set"
            " CLAWDFORGE_AGENT_UIDS to a range that does",
        )
    why = _try(found, User(numbers.first, numbers.first), tag)
    return replace(found, uid=True) if why is None else _lacks(found, why)


def _lacks(found: Containment, why: str) -> Containment:
    return replace(found, why_no_users=why)


def _is_mapped(name: str, numbers: Numbers) -> bool:
    """Whether all of the numbers are in one line of that map of /proc; a machine's own has them all."""
    try:
        lines = Path("/proc/self", name).read_text().splitlines()
    except OSError:
        return True
    rows = [[int(word) for word in line.split()] for line in lines]
    return any(start <= numbers.first and numbers.last < start + count for start, _, count in rows)


def _try(found: Containment, user: User, tag: Tag | None) -> str | None:
    """Why an agent cannot be such a user; None when it can, and gets no further."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="clawdforge-") as folder,
            reaping_first() as info,
            open(os.devnull, "wb") as status,  # noqa: PTH123 - a descriptor is what is needed
        ):
            here = Path(folder).resolve()
            own, other = here / "own", here / "other"
            for path, number in ((own, user.uid), (other, 0)):
                path.mkdir(mode=0o700)
                os.chown(path, number, number)
            wrapped = found.wrap(
                [str(EXECUTABLE), "-I", "-S", "-c", TRY, str(own), str(other), str(user.uid)],
                folders=AgentFolders(data_dir=here / "data", home=own, workspace=own, readable=(other,)),
                status_fd=status.fileno(),
                limits=Limits(),
                sandbox="auto",
                user=user,
            )
            done = subprocess.run(
                [wrapped[0], "--info-fd", str(info), *wrapped[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
                env=tag_environment(tag),
                pass_fds=[info, status.fileno()],
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.stdout.strip() == b"True":
        return None
    return done.stderr.decode(errors="replace").strip()[-200:] or "the attempt got through"
