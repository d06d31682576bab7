"""What of an agent can be bounded on a machine: found by a try, and only checked by the doctor."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ByteSize

from clawdforge.core.clock import SystemClock
from clawdforge.drivers.processes import cgroups, group_trees
from clawdforge.drivers.processes.cgroups import find_cgroups
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.settings import Settings
from clawdforge.upkeep.doctor import examine
from tests.needs import needs
from tests.unit.contained import BOOT, groups_of

CEILINGS = Ceilings(processes=200, memory=200 << 20)
NOBODY = 65534


@needs("cgroups")
def test_three_quarters_of_what_there_is_are_the_default(tmp_path: Path) -> None:
    found = find_cgroups(tmp_path, BOOT, Ceilings(processes=7, memory=0))
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.processes == 7
    assert found.memory is not None
    assert 0 < found.memory <= total * 3 // 4


@needs("cgroups")
def test_the_doctor_tells_the_limits(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, agent_max_processes=321, agent_max_memory_bytes=ByteSize(1 << 30))
    found = [finding for finding in examine(settings, SystemClock()) if finding.about == "limits"]
    assert [finding.level for finding in found] == ["ok"]
    assert found[0].text.startswith("an agent may have 321 processes and 1024 MiB of memory (cgroup v")
    assert not groups_of(tmp_path)


# It moves itself into a group of its own, of version 2. Which controller there is does not matter here.
LOOK = """
import os, sys
from pathlib import Path
from clawdforge.drivers.processes import cgroups, group_trees
folder, controller, data, alone = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4] == "alone"
(folder / "cgroup.procs").write_text(str(os.getpid() if alone else os.getppid()))
if not alone:
    (folder / "cgroup.procs").write_text(str(os.getpid()))
cgroups.CONTROLLERS = group_trees.CONTROLLERS = (controller,)
group_trees.SHARED = "none"
def state():
    text = [(folder / name).read_text() for name in ("cgroup.subtree_control", "cgroup.procs")]
    return text, sorted(path.name for path in folder.iterdir() if path.is_dir())
before = state()
ceilings = group_trees.Ceilings(processes=9, memory=1 << 30)
for dry_run in (True, False):
    found = cgroups.find_cgroups(data, "boot", ceilings, dry_run=dry_run)
    print(found.reason, found.details, len(found._hierarchies), state() == before, sep="|")
"""


@pytest.fixture
def delegated() -> Iterator[tuple[Path, str]]:
    """A group of version 2 and a controller that it may hand on; all is as before after it."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    tops = [Path(at) for _, at, kind, *_ in mounts if kind == "cgroup2"]
    words = [word for top in tops for word in (top / "cgroup.controllers").read_text().split()]
    usable = [word for word in words if word in ("memory", "hugetlb", "io")]
    if not usable or os.geteuid() != 0:
        pytest.skip("no controller of version 2 that root could hand on here")
    top, control = tops[0], tops[0] / "cgroup.subtree_control"
    had = usable[0] in control.read_text().split()
    folder = top / f"look-{os.getpid()}"
    control.write_text(f"+{usable[0]}")
    folder.mkdir()
    try:
        yield folder, usable[0]
    finally:
        assert group_trees.remove_group(folder)
        with contextlib.suppress(OSError):  # somebody else may have begun to use it
            control.write_text("" if had else f"-{usable[0]}")


def test_the_doctor_foretells_and_changes_nothing(tmp_path: Path, delegated: tuple[Path, str]) -> None:
    folder, controller = delegated

    def look(company: str) -> list[list[str]]:
        command = [sys.executable, "-c", LOOK, str(folder), controller, str(tmp_path), company]
        shell = ["sh", "-c", '"$@"; exit $?', "sh", *command]
        done = subprocess.run(shell, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [line.split("|") for line in done.stdout.splitlines()]

    why = "other programs are in the server's group"
    refused = [f"{controller}: {why}", f"{controller}: [Errno 16] {why}: '{folder}'", "0", "True"]
    assert look("shared") == [refused, refused]
    untried = f"cgroup v2; {controller}: not tried, because the server would have to change its own group"
    assert look("alone") == [["cgroup v2", untried, "1", "True"], ["cgroup v2", "cgroup v2", "1", "False"]]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_where_groups_cannot_be_made_it_says_why(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    code = (
        "import os, sys, pathlib\n"
        "from clawdforge.drivers.processes.cgroups import find_cgroups\n"
        "from clawdforge.drivers.processes.group_trees import Ceilings\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "found = find_cgroups(pathlib.Path('/nowhere'), 'b', Ceilings(processes=1, memory=1))\n"
        "print(found.processes, found.memory, found.reason, found.details, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    processes, memory, reason, details = done.stdout.splitlines()
    assert (processes, memory) == ("None", "None")
    assert "Permission denied" in reason or "not offered" in reason
    assert "/sys" not in reason, "everybody may read it"
    assert "/sys/fs/cgroup" in details or "not offered" in reason


@needs("cgroups")
def test_why_no_process_could_be_put_into_a_group_is_for_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "TRY", "import sys; sys.exit(3)")
    found = find_cgroups(tmp_path, BOOT, CEILINGS)
    assert (found.processes, found.memory) == (None, None)
    assert found.reason == "no process could be put into a group"
    assert sys.executable in found.details
    assert "exit status 3" in found.details
    assert not groups_of(tmp_path)
