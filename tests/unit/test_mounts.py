"""The list of what an agent sees: the plan of it, and how it looks from inside, as root and as anybody."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.drivers.processes.mounts import AgentFolders, Mount, list_arguments, plan_base, plan_mounts
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.walls import NO_WALLS
from clawdforge.wire.errors import WorkspaceChanged
from tests.needs import needs
from tests.unit.contained import SESSION, Bench, bench_on, containment

CANARY = "canary-of-the-operator"
TOP = Path(__file__).parents[2]
NOBODY = 65534


def folders(**more: object) -> AgentFolders:
    given = {"data_dir": Path("/d"), "home": Path("/d/homes/s"), "workspace": Path("/w/project")}
    return AgentFolders(**{**given, **more})  # type: ignore[arg-type]


def plan(given: AgentFolders, own: tuple[Mount, ...] = ()) -> dict[str, str]:
    return {str(mount.path): mount.how for mount in plan_mounts(given, plan_base(own))}


def found(path: str) -> Mount:
    return Mount(Path(path), "read-only", "the agent's program")


def test_parents_come_first() -> None:
    depths = [
        path.count("/") for path in plan(folders(runtime=(found("/w/project/../x/y/z"), found("/a/b"))))
    ]
    assert depths == sorted(depths)


def test_what_is_visible_already_is_not_mounted_again() -> None:
    given = folders(
        runtime=(found("/opt/a"), found("/opt/a/lib"), found("/w/project/.venv"), found("/usr/x"))
    )
    paths = plan(given)
    assert "/opt/a" in paths
    assert not {"/opt/a/lib", "/w/project/.venv", "/usr/x"} & set(paths)


def test_the_servers_own_code_is_read_only_in_a_workspace() -> None:
    """Who may change what the server runs is not contained: the next start would be his."""
    paths = plan(folders(), (found("/w/project/venv"), found("/w/project/venv/lib/launcher.py")))
    assert paths["/w/project"] == "writable"
    assert paths["/w/project/venv"] == "read-only"
    assert "/w/project/venv/lib/launcher.py" not in paths


def test_the_data_folder_is_covered_where_something_holds_it() -> None:
    assert "/d" not in plan(folders())
    paths = plan(folders(data_dir=Path("/w/project/d"), home=Path("/w/project/d/homes/s")))
    assert paths["/w/project/d"] == "empty"
    assert list(paths).index("/w/project") < list(paths).index("/w/project/d")
    assert list(paths).index("/w/project/d") < list(paths).index("/w/project/d/homes/s")
    shown = plan(folders(data_dir=Path("/w/project/d"), runtime=(found("/w/project/d/venv"),)))
    assert shown["/w/project/d/venv"] == "read-only"  # the cover would hide it


def test_the_temporary_folder_is_the_homes_unless_something_lies_in_it() -> None:
    assert plan(folders(tmp=Path("/d/homes/s/.tmp")))["/tmp"] == "writable"
    assert plan(folders(tmp=Path("/d/homes/s/.tmp"), workspace=Path("/tmp/w")))["/tmp"] == "empty"
    assert plan(folders())["/tmp"] == "empty"


def test_no_list_of_mounts_leaves_the_root_writable() -> None:
    assert list(list_arguments(plan_mounts(folders(), plan_base(())), {}))[-2:] == ["--remount-ro", "/"]


@pytest.fixture(params=["bwrap", "bwrap-full"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        yield bench


async def said(bench: Bench, script: str) -> str:
    process = await bench.spawn("sh", "-c", script)
    text = (await asyncio.wait_for(process.stdout.read(), 60)).decode()
    await process.close()
    return text


@needs("bwrap")
async def test_the_machine_from_inside(bench: Bench) -> None:
    top = set((await said(bench, "ls -A /")).split())
    ways = {Path(path).parts[1] for path in (sys.executable, sys.base_prefix, TOP, bench.data)}
    assert top <= {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu", "run"} | ways | {
        *("dev", "etc", "proc", "tmp", "usr")
    }
    etc = set((await said(bench, "ls -A /etc")).split())
    assert {"passwd", "group", "hosts"} <= etc
    assert not {"shadow", "gshadow", "sudoers", "ssh", "npmrc", "pip.conf", "fstab", "machine-id"} & etc
    devices = set((await said(bench, "ls -A /dev")).split())
    assert devices <= {
        *("null", "zero", "full", "random", "urandom", "tty", "console", "core", "ptmx", "pts", "shm", "fd"),
        *("stdin", "stdout", "stderr"),
    }
    for program in filter(shutil.which, ("git", "python3", "node", "perl")):
        assert await said(bench, f"{program} --version >/dev/null 2>&1; echo $?") == "0\n", program
    assert await said(bench, "getent passwd $(id -u) >/dev/null && echo known") == "known\n"


@needs("bwrap")
async def test_nothing_outside_can_be_written(bench: Bench) -> None:
    places = [
        Path(at, f"clawdforge-{os.getpid()}") for at in ("/", "/etc", "/usr", "/root", "/home", "/var/tmp")
    ]
    names = " ".join(map(str, places))
    assert await said(bench, f"touch {names} 2>/dev/null; ls {names} 2>/dev/null") == ""
    assert not [place for place in places if place.exists()]


@needs("bwrap")
async def test_what_is_given_to_a_session_is_not_followed_through_a_link(
    bench: Bench, tmp_path: Path
) -> None:
    """The agent owns its home: it may swap a folder there while a terminal of its is started."""
    (tmp_path / "op").mkdir()
    (tmp_path / "op" / "key").write_text(CANARY)
    (bench.home / "uploads").symlink_to(tmp_path / "op")
    with pytest.raises(WorkspaceChanged):
        await bench.spawner.spawn(
            ["cat", str(tmp_path / "op" / "key")],
            cwd=bench.workspace,
            home=bench.home,
            env=bench.env(),
            tag=SESSION,
            readable=[bench.home / "uploads"],
        )
    (bench.home / ".tmp").symlink_to(tmp_path / "op")
    assert CANARY not in await said(bench, f"cat /tmp/key {tmp_path}/op/key 2>/dev/null")


@pytest.fixture
def outside_tmp() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="clawdforge-", dir="/var/tmp") as folder:
        yield Path(folder)


@needs("bwrap")
@pytest.mark.skipif(TOP.is_relative_to("/tmp"), reason="the program lies in /tmp: each has its own")
async def test_an_agent_and_its_terminals_share_a_temporary_folder(outside_tmp: Path) -> None:
    async with bench_on(outside_tmp, "bwrap") as bench:
        (bench.home / ".tmp").mkdir()
        await said(bench, "echo shared >/tmp/note")
        assert await said(bench, 'cat /tmp/note "$TMPDIR/note"') == "shared\nshared\n"
        assert (bench.home / ".tmp" / "note").read_text() == "shared\n"


@needs("bwrap")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
async def test_a_workspace_that_is_a_mount_point(bench: Bench, tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = await asyncio.create_subprocess_exec("mount", "-t", "tmpfs", "tmpfs", place)
    if await mounted.wait() != 0:
        pytest.skip("nothing can be mounted here")
    try:
        bench.workspace = place
        await said(bench, "echo written >here")
        assert (place / "here").read_text() == "written\n"
    finally:
        await (await asyncio.create_subprocess_exec("umount", place)).wait()


# Run by a Python that everybody may run, as a user who owns nothing else.
AS_ANYBODY = """
import asyncio, json, os, sys
from pathlib import Path
root, uid = Path(sys.argv[1]), int(sys.argv[2])
os.setgroups([]); os.setgid(uid); os.setuid(uid)
os.environ["HOME"] = str(root / "op")
from tests.unit.contained import bench_on
async def look():
    async with bench_on(root, "bwrap") as bench:
        (root / "op").mkdir()
        (root / "op" / "key").write_text("canary-of-the-operator")
        script = f"cat {root}/op/key; ls -A /root /home; echo x >/etc/x; echo x >mine && cat mine; id -u"
        process = await bench.spawn("sh", "-c", script)
        print(json.dumps([(await process.stdout.read()).decode(), process.stderr_tail()]))
        await process.close()
asyncio.run(look())
"""


@needs("bwrap")
@pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to become another user; else all tests are run as one"
)
def test_the_walls_stand_for_an_ordinary_user(outside_tmp: Path) -> None:
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if python is None or not Path(os.path.realpath(python)).name.endswith(version):
        pytest.skip(f"no Python {version} that everybody may run")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    path = os.pathsep.join([str(TOP / "src"), str(TOP), packages])
    if any(not folder.stat().st_mode & 0o001 for folder in (TOP, *TOP.parents, Path(packages))):
        pytest.skip("others may not read this checkout")
    os.chown(outside_tmp, NOBODY, NOBODY)
    done = subprocess.run(
        [python, "-c", AS_ANYBODY, outside_tmp, str(NOBODY)],
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    out, errors = json.loads(done.stdout)
    assert out.split() == ["x", str(NOBODY)], errors
    assert CANARY not in out


@needs("bwrap")
async def test_a_workspace_that_vanished_is_told(bench: Bench) -> None:
    spawner = Spawner(containment(bench.kind), bench.data, "b")
    with pytest.raises(Exception, match="does not exist, or is not mounted; put the folder back"):
        await spawner.spawn(
            ["true"], cwd=bench.data.parent / "gone", home=bench.home, env=bench.env(), tag=SESSION
        )


@needs("bwrap")
async def test_nothing_of_the_kernel_can_be_changed(bench: Bench) -> None:
    """As root this would be a way to run a program outside, with all rights. By the mounts alone."""
    bench.spawner = Spawner(replace(containment(bench.kind), walls=NO_WALLS), bench.data, "b")
    settings = "kernel/core_pattern kernel/modprobe vm/overcommit_memory"
    script = f"for f in {settings}; do (: >>/proc/sys/$f) 2>&1 && echo $f is open; done; echo end"
    process = await bench.spawn("sh", "-c", script)
    said = (await asyncio.wait_for(process.stdout.read(), 60)).decode()
    assert "end" in said
    assert "is open" not in said


def test_our_own_code_is_read_only_in_the_folder_of_its_developer() -> None:
    code, elsewhere = Path("/w/project/src/package"), Path("/elsewhere")
    found = {mount.path: mount.how for mount in plan_mounts(folders(), (), (code, elsewhere))}
    assert found[code] == "read-only"
    assert found[Path("/w/project")] == "writable"
    assert elsewhere not in found
