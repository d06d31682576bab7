"""Each wall inside an agent's process: attacks that fail with it, and get through where it is taken away."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clawdforge.drivers.processes import containment, landlock, mounts, walls
from clawdforge.drivers.processes.containment import Containment, Limits, find_containment
from clawdforge.drivers.processes.launching import find_command
from clawdforge.drivers.processes.mounts import AgentFolders, Mount
from clawdforge.drivers.processes.policy import Policy
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.walls import NO_WALLS, find_walls
from clawdforge.wire.errors import AgentStartFailed
from tests.needs import needs
from tests.unit import attacks
from tests.unit.contained import BOOT, LANDLOCK, SESSION, Bench, bench_on

CANARY = "canary-71c4"
KINDS = [LANDLOCK, *(pytest.param(kind, marks=needs("bwrap")) for kind in ("bwrap", "bwrap-full"))]


@pytest.fixture(params=KINDS)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        yield bench


def without(bench: Bench, **walls: Any) -> Bench:
    """The same with some walls taken away."""
    found = bench.spawner.containment
    bench.spawner = Spawner(replace(found, walls=replace(found.walls, **walls)), bench.data, BOOT)
    return bench


async def run(bench: Bench, *argv: str, policy: Policy | None = None) -> str:
    process = await bench.spawner.spawn(
        argv,
        cwd=bench.workspace,
        home=bench.home,
        env=bench.env(),
        tag=SESSION,
        needs=Needs(((sys.executable,),)),
        policy=policy or Policy(),
    )
    try:
        said = await asyncio.wait_for(process.stdout.read(), 60)
    finally:
        await process.close()
    assert said, process.stderr_tail()
    return said.decode()


async def attack(bench: Bench, program: list[str], policy: Policy | None = None) -> dict[str, bool]:
    found: dict[str, bool] = json.loads(await run(bench, *program, policy=policy))
    return found


def through(found: dict[str, bool]) -> list[str]:
    return [name for name, got in found.items() if got]


async def test_no_system_call_of_an_escape_gets_through(bench: Bench) -> None:
    assert through(await attack(bench, attacks.command(attacks.SYSTEM_CALLS))) == []


async def test_without_the_filter_the_same_calls_get_through(bench: Bench) -> None:
    found = await attack(without(bench, seccomp=False), attacks.command(attacks.SYSTEM_CALLS))
    mended = {name for name, got in found.items() if not got}
    # Some kernels are built without these, and a machine may forbid namespaces.
    perhaps = {
        "call as 32 bits",
        "set up io_uring",
        "ask for a key",
        "unshare a time namespace with a user's",
    }
    assert mended <= perhaps


async def test_a_set_uid_file_that_no_filter_sees_stays_empty(bench: Bench) -> None:
    assert through(await attack(bench, attacks.command(attacks.SET_ID_FILES))) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has powers to keep")
@pytest.mark.parametrize("kind", KINDS)
async def test_with_one_more_power_a_set_uid_file_could_be_filled(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(walls.ROOT_KEEPS, "CAP_FSETID", 4)
    async with bench_on(tmp_path, kind) as bench:
        assert "write" in through(await attack(bench, attacks.command(attacks.SET_ID_FILES)))


@needs("bwrap")
@pytest.mark.parametrize("name", ["workspace", "home"])
async def test_an_agent_does_not_run_where_another_folder_was_mounted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bwrap mounts by a path, under which something else may lie by then."""
    other = tmp_path / "other"
    other.mkdir()
    plan = mounts.list_arguments

    async with bench_on(tmp_path, "bwrap") as bench:
        held = {"workspace": bench.workspace, "home": bench.home}[name].resolve()

        def mount_another(planned: Sequence[Mount], sources: Mapping[Path, str]) -> Iterator[str]:
            return plan(planned, {**sources, held: str(other)})

        monkeypatch.setattr(containment, "list_arguments", mount_another)
        with pytest.raises(AgentStartFailed, match="another folder took its place while it was mounted"):
            await run(bench, "true")
        monkeypatch.undo()
        assert await run(bench, "echo", "fine") == "fine\n"


async def test_an_agent_may_be_allowed_namespaces_and_tracing(bench: Bench) -> None:
    program = attacks.command(attacks.SYSTEM_CALLS)
    namespaces = await attack(bench, program, Policy(allows=("namespaces",)))
    tracing = await attack(bench, program, Policy(allows=("tracing",)))
    assert {"unshare a user namespace", "clone into a user namespace"} <= set(through(namespaces))
    assert not {"trace a child", "ask for a key"} & set(through(namespaces))
    assert {"trace a child", "read memory across processes"} <= set(through(tracing))
    assert not {"unshare a user namespace", "ask for a key"} & set(through(tracing))


@needs("bwrap")
async def test_an_agent_that_may_have_namespaces_can_run_a_sandbox_of_its_own(tmp_path: Path) -> None:
    # Root without its powers may not make itself root in another namespace, so it becomes somebody else.
    other = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups") if os.geteuid() == 0 else ()
    inner = (*other, "bwrap", "--unshare-user", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "echo", "inside")
    async with bench_on(tmp_path, "bwrap") as bench:
        assert await run(bench, *inner, policy=Policy(allows=("namespaces",))) == "inside\n"
        assert await run(bench, "sh", "-c", '"$@" 2>/dev/null || echo refused', "sh", *inner) == "refused\n"


async def test_ordinary_programs_run_behind_all_walls(bench: Bench) -> None:
    # Shared memory has a folder of its own in a namespace only; elsewhere it is that of the whole machine.
    shared = "" if bench.kind == "landlock" else "multiprocessing.Lock();"
    script = (
        "git init -q . && echo x >a && git add a && git -c user.name=a -c user.email=a@b commit -qm x"
        " && mkdir -p d/e && mv a d/e/ && cp d/e/a $HOME/ && mv $HOME/a . && ln -s a l && mkfifo f"
        f" && {sys.executable} -c 'import socket, ssl, threading, tempfile, subprocess, multiprocessing;"
        ' socket.getaddrinfo("localhost", 1); tempfile.TemporaryFile();'
        ' threading.Thread(target=print, args=("thread",)).start();'
        f' {shared} subprocess.run(["true"], check=True)\''
        " && (sleep 100 & kill $!) && head -c 4 /dev/urandom >/dev/null && echo done >/dev/stdout"
    )
    assert await run(bench, "sh", "-ec", script) == "thread\ndone\n"


@pytest.fixture
def listener() -> Iterator[str]:
    name = f"clawdforge-walls-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"\0{name}")
        sock.listen(8)
        yield name


@pytest.fixture
def shared() -> Iterator[Path]:
    path = Path("/dev/shm") / f"clawdforge-walls-{os.getpid()}"
    yield path
    path.unlink(missing_ok=True)


def scene(bench: Bench, root: Path, abstract: str, shared: Path) -> dict[str, object]:
    """Places where an agent has no business."""
    other = bench.data / "homes" / "other"
    other.mkdir()
    outside = root / "elsewhere"
    places = {
        "token": bench.data / "admin.token",
        "other": other / "secret",
        "movable": bench.data / "movable",
        "removable": bench.data / "removable",
        "short": bench.data / "short",
        "elsewhere": outside,
        "shared": shared,
    }
    for path in places.values():
        path.write_text(CANARY)
    facts: dict[str, object] = {name: str(path) for name, path in places.items()}
    facts |= {"processors": sorted(os.sched_getaffinity(0))}
    return facts | {"data": str(bench.data), "server": os.getpid(), "abstract": abstract}


@needs("landlock")
async def test_landlock_alone_keeps_an_agent_in_its_folders(
    tmp_path: Path, listener: str, shared: Path
) -> None:
    async with bench_on(tmp_path, "landlock") as bench:
        assert bench.spawner.containment.active == "landlock"
        found = await attack(bench, attacks.command(attacks.FILES, scene(bench, tmp_path, listener, shared)))
    assert through(found) == []


@needs("landlock")
async def test_namespaces_do_not_cost_landlock_where_it_is_the_only_wall(
    tmp_path: Path, listener: str, shared: Path
) -> None:
    async with bench_on(tmp_path, "landlock") as bench:
        program = attacks.command(attacks.FILES, scene(bench, tmp_path, listener, shared))
        found = await attack(bench, program, Policy(allows=("namespaces", "tracing")))
    assert through(found) == []


@needs("landlock")
async def test_a_folder_that_is_swapped_for_a_link_gives_no_right_over_its_target(tmp_path: Path) -> None:
    """Rights are given by descriptor: what takes the name after it was opened is not meant."""
    async with bench_on(tmp_path, "landlock") as bench:
        other, given = bench.data / "homes" / "other", bench.home / "given"
        other.mkdir()
        (other / "secret").write_text(CANARY)
        given.mkdir()
        (given / "file").write_text("given")
        wrap = bench.spawner.containment.wrap

        def swap(*args: Any, **more: Any) -> list[str]:
            given.rename(bench.home / "moved")
            given.symlink_to(other)
            return wrap(*args, **more)

        bench.spawner.containment = SwappingContainment(bench.spawner.containment, swap)  # type: ignore[assignment]
        process = await bench.spawner.spawn(
            ["sh", "-c", f"cat {bench.home}/moved/file {given}/secret"],
            cwd=bench.workspace,
            home=bench.home,
            env=bench.env(),
            tag=SESSION,
            readable=[given],
        )
        said = (await asyncio.wait_for(process.stdout.read(), 60)).decode()
        await process.close()
    assert said == "given"


class SwappingContainment:
    """A containment, and somebody who does something just before a command is wrapped."""

    def __init__(self, found: Containment, wrap: Callable[..., list[str]]) -> None:
        self.choose = found.choose
        self.wrap = wrap


async def test_without_landlock_all_of_it_gets_through(tmp_path: Path, listener: str, shared: Path) -> None:
    async with bench_on(tmp_path, "tree") as bench:
        found = await attack(bench, attacks.command(attacks.FILES, scene(bench, tmp_path, listener, shared)))
    mended = {name for name, got in found.items() if not got}
    # Those two are the work of `harden_self`, or of root's own rights.
    by_others = {"read the server's environment", "list the server's descriptors"}
    assert mended <= by_others | (set() if os.geteuid() == 0 else {"change a setting of the kernel"})


@needs("bwrap")
@needs("landlock")
@pytest.mark.parametrize("scopes", [True, False])
async def test_abstract_sockets_of_the_machine_are_out_of_reach(
    tmp_path: Path, listener: str, shared: Path, scopes: bool
) -> None:
    async with bench_on(tmp_path, "bwrap") as walled:
        bench = walled if scopes else without(walled, scopes=False)
        facts = scene(bench, tmp_path, listener, shared)
        found = await attack(bench, attacks.command(attacks.FILES, facts))
    assert found["connect to an abstract socket"] is not scopes


@needs("bwrap")
@needs("landlock")
@pytest.mark.parametrize("files", [True, False])
def test_a_mount_too_many_cannot_be_written(tmp_path: Path, files: bool) -> None:
    """Landlock stands behind the mounts: a folder that was made writable by mistake is not."""
    found = find_containment("full")
    found = found if files else replace(found, walls=replace(found.walls, files=False))
    for name in ("data", "home", "work"):
        (tmp_path / name).mkdir()
    folders = AgentFolders(data_dir=tmp_path / "data", home=tmp_path / "home", workspace=tmp_path / "work")
    mistake = tempfile.mkdtemp(dir="/var/tmp")  # not in /tmp, which an agent may write
    script = f"echo 1 >{tmp_path}/work/mine && echo 2 >{mistake}/file"
    status = os.open(os.devnull, os.O_WRONLY)
    wrapped = found.wrap(["/bin/sh", "-c", script], folders=folders, status_fd=status, limits=Limits())
    place = wrapped.index("--remount-ro")
    wrapped[place:place] = ["--bind", mistake, mistake]
    subprocess.run(wrapped, pass_fds=[status], capture_output=True, check=False)
    os.close(status)
    written = (Path(mistake) / "file").exists()
    shutil.rmtree(mistake)
    assert (tmp_path / "work" / "mine").exists()
    assert written is not files


async def test_nothing_can_be_gained_by_a_set_uid_program(tmp_path: Path) -> None:
    for kind in ("tree", *(("bwrap",) if find_containment("auto").bwrap else ())):
        async with bench_on(tmp_path / kind, kind) as bench:
            assert "NoNewPrivs:\t1" in await run(bench, "cat", "/proc/self/status")


async def test_a_terminal_has_the_walls_of_its_agent(bench: Bench) -> None:
    agent = await bench.spawn("cat")
    process = await bench.spawner.spawn(
        attacks.command(attacks.SYSTEM_CALLS),
        cwd=bench.workspace,
        home=bench.home,
        env=bench.env(),
        tag=SESSION,
        needs=Needs(((sys.executable,),)),
        beside=agent,
    )
    found = json.loads(await asyncio.wait_for(process.stdout.read(), 60))
    await process.close()
    assert through(found) == []


async def test_an_agent_does_not_run_where_a_wall_cannot_be_put_up(bench: Bench) -> None:
    """A filter that the kernel refuses stands for all that may go wrong."""
    found = bench.spawner.containment
    broken = replace(found.walls, version=1000)  # no kernel knows so many rights

    class Broken(type(found)):  # type: ignore[misc]
        def wrap(self, *args: Any, **more: Any) -> list[str]:
            words = super().wrap(*args, **more)
            return ["filter=00" if word.startswith("filter=") else word for word in words]

    bench.spawner = Spawner(
        Broken(found.level, found.active, found.reason, found.bwrap, found.base, broken), bench.data, BOOT
    )
    with pytest.raises(AgentStartFailed, match="could not be contained: a wall around the agent"):
        await run(bench, "echo", "ran")


def test_what_holds_is_found_out_by_attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = find_walls()
    assert (found.names, found.reasons) == (
        ("no_new_privs", "seccomp", "landlock", "landlock_scopes"),
        (),
    ) or found.reasons
    lying = tmp_path / "launcher.py"  # one that puts up nothing: the kernel's word alone counts for nothing
    lying.write_text(
        "import os, sys\nend = sys.argv.index('--')\nos.execv(sys.argv[end + 1], sys.argv[end + 1:])"
    )
    monkeypatch.setattr(walls, "find_command", lambda: (*find_command()[:-1], str(lying)))
    fooled = find_walls()
    assert fooled.names == ("no_new_privs",)
    assert any("got through" in reason for reason in fooled.reasons)


def test_auto_takes_landlock_where_bubblewrap_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_containment("auto", bwrap="no-such-bwrap")
    if found.walls.files:
        assert (found.active, found.wall_names[0]) == ("landlock", "no_new_privs")
        assert "landlock" in found.wall_names
        assert found.reason == "bwrap is not installed; Landlock holds"
    monkeypatch.setattr("clawdforge.drivers.processes.containment.find_walls", lambda: NO_WALLS)
    bare = find_containment("auto", bwrap="no-such-bwrap")
    assert (bare.active, bare.wall_names) == ("tree", ("no_new_privs",))
    assert find_containment("off", bwrap="no-such-bwrap").active == "tree"
    with pytest.raises(AgentStartFailed, match="install bubblewrap"):
        find_containment("auto", bwrap="no-such-bwrap").choose("full")


def test_no_right_is_given_over_a_folder_around_the_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    places = (tmp_path, tmp_path.parent, Path("/"), data)
    around = [Mount(path, how, "") for path in places for how in ("read-only", "writable", "copy")]
    access = landlock.without_namespace(around, dict.fromkeys(places, "/proc/self/fd/0"), data)
    assert "/proc/self/fd/0" not in access.rights
    given = [Path(path) for path in access.rights]
    assert not [path for path in given if data.is_relative_to(path)]
