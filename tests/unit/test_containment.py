"""What an agent can see and reach, and what becomes of the orphans of a dead server."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.folder_identity import read_identity
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.survivors import TAG, folder_id, read_tag
from clawdforge.wire.errors import AgentStartFailed, WorkspaceChanged
from tests.api.harness import until as wait_until
from tests.needs import needs
from tests.unit.contained import LANDLOCK, SESSION, Bench, beats, bench_on, still, until

CANARY = "canary-3f9d"
BWRAP = [pytest.param(kind, marks=needs("bwrap")) for kind in ("bwrap", "bwrap-full")]
NOBODY = 65534


@pytest.fixture(params=["tree", LANDLOCK, *BWRAP])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        yield bench


@pytest.fixture(params=BWRAP)
async def walled(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        yield bench


async def said(bench: Bench, script: str, **more: str) -> str:
    process = await bench.spawn("sh", "-c", script, **more)
    text = (await asyncio.wait_for(process.stdout.read(), 60)).decode()
    await process.close()
    return text


async def test_a_workspace_that_became_a_link_is_refused(bench: Bench, tmp_path: Path) -> None:
    """An agent that may write around its folder could have the next one mount the data folder there."""
    (bench.data / "admin.token").write_text(CANARY)
    outside = tmp_path / "outside"
    outside.mkdir()
    bench.workspace = outside
    assert await said(bench, "pwd") == f"{outside}\n"
    outside.rmdir()
    outside.symlink_to(bench.data)
    with pytest.raises(WorkspaceChanged, match="replaced by a link"):
        await bench.spawn("cat", "admin.token")
    outside.unlink()
    (tmp_path / "above").symlink_to(tmp_path)
    bench.workspace = tmp_path / "above" / "data" / "workspaces"
    with pytest.raises(WorkspaceChanged):
        await bench.spawn("true")
    bench.workspace = tmp_path / "gone"
    with pytest.raises(WorkspaceChanged, match="does not exist, or is not mounted"):
        await bench.spawn("true")


async def test_another_folder_of_the_same_name_is_refused(bench: Bench, tmp_path: Path) -> None:
    """It may come to a workspace's place by a rename; and none may lie around the data folder."""
    outside, decoy = tmp_path / "outside", tmp_path / "decoy"
    for folder in (outside, decoy):
        folder.mkdir()
    fd = os.open(outside, os.O_PATH)
    identity = read_identity(fd)
    os.close(fd)

    async def spawn() -> AgentProcess:
        return await bench.spawner.spawn(
            ["true"], cwd=outside, home=bench.home, env=bench.env(), tag=SESSION, identity=identity
        )

    await (await spawn()).close()
    outside.rename(tmp_path / "aside")
    decoy.rename(outside)
    with pytest.raises(WorkspaceChanged, match="not the folder that the session was made in"):
        await spawn()
    outside.rmdir()
    (tmp_path / "aside").rename(outside)
    await (await spawn()).close()
    bench.workspace = tmp_path
    with pytest.raises(WorkspaceChanged, match="data folder"):
        await bench.spawn("true")


async def test_a_data_folder_behind_a_link_of_the_operators_is_fine(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    async with bench_on(tmp_path / "link", "tree") as bench:
        assert await said(bench, "pwd -P") == f"{tmp_path}/disk/data/workspaces/{SESSION}\n"


async def test_no_descriptor_of_the_mounts_is_left_to_an_agent(bench: Bench) -> None:
    listed = await said(bench, "ls /proc/self/fd")
    assert set(listed.split()) <= {"0", "1", "2", "3"}  # the last is the list itself


def test_the_environment_is_an_allow_list() -> None:
    spec = AgentSpec(
        name="a",
        driver="acp",
        command=("a",),
        env=("ANTHROPIC_API_KEY", "CLAWDFORGE_ADMIN_TOKEN", "ABSENT"),
        set_env={"MODE": "x", "CLAWDFORGE_SECRET": CANARY},
    )
    operator = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "TZ": "UTC",
        "HOME": "/root",
        "TERM": "xterm",
        "ANTHROPIC_API_KEY": "k",
        "CLAWDFORGE_ADMIN_TOKEN": CANARY,
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "LD_PRELOAD": CANARY,
    }
    env = agent_env(spec, Path("/h"), operator)
    assert env == {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        "LC_ALL": "C",
        "TZ": "UTC",
        "HOME": "/h",
        "TMPDIR": "/h/.tmp",
        "TERM": "dumb",
        "ANTHROPIC_API_KEY": "k",
        "MODE": "x",
    }


async def test_an_agent_sees_the_allowed_variables_and_its_tag(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAWDFORGE_ADMIN_TOKEN", CANARY)
    monkeypatch.setenv("SOME_KEY", CANARY)
    seen = dict(line.split("=", 1) for line in (await said(bench, "env", GIVEN="1")).splitlines())
    assert CANARY not in seen.values()
    assert [name for name in seen if name.startswith("CLAWDFORGE_")] == [TAG]
    assert seen[TAG].split(":")[2] == SESSION
    assert seen["HOME"] == str(bench.home)
    assert seen["GIVEN"] == "1"


async def test_an_agent_has_no_descriptor_of_the_server(bench: Bench, tmp_path: Path) -> None:
    with (tmp_path / "database").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        code = 'import os; print(*os.listdir("/proc/self/fd"))'
        fds = (await said(bench, f"exec {sys.executable} -c '{code}'")).split()
    assert sorted(map(int, fds))[:3] == [0, 1, 2]
    assert len(fds) <= 4  # the fourth is the listing itself


async def test_an_agent_in_a_namespace_sees_no_process_of_others(walled: Bench) -> None:
    pids = (await said(walled, "echo /proc/[0-9]*")).split()
    assert 0 < len(pids) <= 3
    assert f"/proc/{os.getpid()}" not in pids


async def test_the_data_folder_is_empty_but_for_its_own(walled: Bench) -> None:
    (walled.data / "clawdforge.db").write_text(CANARY)
    other = walled.data / "homes" / "other"
    other.mkdir()
    (other / "secret").write_text(CANARY)
    (walled.home / "mine").write_text("mine")
    text = await said(walled, f"find {walled.data}; cat {walled.home}/mine; grep -r {CANARY} {walled.data}")
    assert "mine" in text
    assert "clawdforge.db" not in text
    assert "other" not in text
    assert CANARY not in text


async def test_the_empty_folder_cannot_be_taken_away(walled: Bench) -> None:
    (walled.data / "clawdforge.db").write_text(CANARY)
    script = f"umount {walled.data}; umount -l {walled.data}; unshare -Urm umount -l {walled.data}"
    text = await said(walled, f"({script}) 2>/dev/null; cat {walled.data}/clawdforge.db")
    assert CANARY not in text


async def test_home_and_workspace_can_be_written_and_are_the_real_ones(bench: Bench) -> None:
    await said(bench, f"echo 1 >{bench.home}/a; echo 2 >b")
    assert (bench.home / "a").read_text() == "1\n"
    assert (bench.workspace / "b").read_text() == "2\n"


async def test_readable_places(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "tree") as tree:
        data, home, workspace, env = tree.data, tree.home, tree.workspace, tree.env()
    upload = data / "files" / "ff_1"
    upload.parent.mkdir()
    upload.write_text("the upload")
    (data / "files" / "ff_2").write_text(CANARY)
    found = probe("auto")
    if found.bwrap is None:
        pytest.skip(found.reason)
    spawner = Spawner(found, data, "b")
    script = f"cat {upload} {data}/files/ff_2; echo x >>{upload}"
    process = await spawner.spawn(
        ["sh", "-c", script], cwd=workspace, home=home, env=env, tag=SESSION, readable=[upload]
    )
    text = (await process.stdout.read()).decode()
    await process.close()
    assert text == "the upload"
    assert upload.read_text() == "the upload"


@needs("bwrap")
async def test_full_writes_nowhere_but_home_workspace_and_a_private_tmp(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "bwrap-full") as bench:
        outside = Path("/var/tmp") / f"clawdforge-{os.getpid()}"
        private = Path("/tmp") / f"clawdforge-{os.getpid()}"
        text = await said(
            bench, f"touch {outside} 2>/dev/null || echo refused; touch {private} && echo private"
        )
        assert text.split() == ["refused", "private"]
        assert not outside.exists()
        assert not private.exists()


async def test_full_without_bwrap_is_refused_and_not_quietly_less(tmp_path: Path) -> None:
    found = probe("full", bwrap="no-such-bwrap")
    assert (found.active, found.reason) == ("tree", "bwrap is not installed")
    spawner = Spawner(found, tmp_path, "b")
    with pytest.raises(AgentStartFailed, match="install bubblewrap"):
        await spawner.spawn(["true"], cwd=tmp_path, home=tmp_path, env={"PATH": "/bin:/usr/bin"}, tag=SESSION)


def test_a_bwrap_that_does_not_work_is_found_out_by_running_it(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho no permission >&2; exit 1\n")
    fake.chmod(0o755)
    found = probe("auto", bwrap=str(fake))
    assert (found.active, found.bwrap) == ("tree", None)
    assert found.reason == "bwrap does not work here: no permission"


@needs("bwrap")
def test_the_agents_own_setting_goes_before_the_servers() -> None:
    assert probe("auto").choose("off") == "tree"
    assert probe("off").active == "tree"
    assert probe("off").choose("full") == "bwrap-full"
    assert probe("full").choose(None) == "bwrap-full"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize(("hardened", "leaks"), [(False, True), (True, False)])
async def test_a_hardened_server_hides_its_environment_from_its_own_user(hardened: bool, leaks: bool) -> None:
    code = (
        "import os, subprocess\n"
        "from clawdforge.drivers.processes import containment, launcher\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "launcher.prctl(launcher.PR_SET_DUMPABLE, 1)\n"  # as it is for a server that was started by that user
        f"{'containment.harden_self()' if hardened else ''}\n"
        "print(subprocess.run(['cat', f'/proc/{os.getpid()}/environ'], env={}, capture_output=True).stdout)"
    )
    env = {"SECRET": CANARY, "PATH": os.environ["PATH"]}
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], env=env, capture_output=True, check=True
    )
    assert (CANARY.encode() in done.stdout) is leaks


async def test_orphans_of_a_dead_server_are_ended_and_others_are_spared(tmp_path: Path) -> None:
    async with bench_on(tmp_path / "a", "tree") as dead, bench_on(tmp_path / "b", "tree") as other:
        orphan = await dead.hostile()
        neighbour = await other.spawn("cat")
        mine = await Spawner(dead.spawner.containment, dead.data, "boot-2").spawn(
            ["cat"], cwd=dead.workspace, home=dead.home, env=dead.env(), tag=SESSION
        )
        tag = read_tag(orphan.pid)
        assert tag is not None
        assert tag.folder == folder_id(dead.data) != folder_id(other.data)
        met = await Spawner(dead.spawner.containment, dead.data, "boot-2").end_orphans()
        assert met >= 4
        await orphan.close()
        assert neighbour.returncode is None
        assert mine.returncode is None
        await mine.close()
        assert any(beats(dead.workspace).values())
        await until(lambda: still(dead.workspace))


def test_what_a_probe_of_a_killed_server_left_is_ended(tmp_path: Path) -> None:
    """A bwrap that was killed early leaves a child that waits for ever; here, one that waits itself."""
    waiting = tmp_path / "bwrap"
    waiting.write_text("#!/bin/sh\nexec sleep 323\n")
    waiting.chmod(0o755)
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from clawdforge.drivers.processes.containment import probe\n"
        "from clawdforge.drivers.processes.survivors import Tag, folder_id\n"
        "probe('auto', bwrap=sys.argv[1], tag=Tag(folder_id(Path(sys.argv[2])), 'boot-1', 'none', 'probe'))"
    )
    server = subprocess.Popen([sys.executable, "-c", program, str(waiting), str(tmp_path)])
    below = psutil.Process(server.pid).children
    wait_until(lambda: [one.name() for one in below()] == ["sleep"] or None, "the run")
    server.kill()
    server.wait()
    assert asyncio.run(Spawner(probe("off"), tmp_path, "boot-2").end_orphans()) == 1


@needs("bwrap")
def test_a_probe_leaves_no_process_behind() -> None:
    """As a subreaper inherits them; in a process of its own, since the state cannot be taken back."""
    program = (
        "from clawdforge.drivers.processes.containment import harden_self, probe\n"
        "from tests.support.processes import children\n"
        "harden_self(); probe('auto'); assert not children(), children()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
