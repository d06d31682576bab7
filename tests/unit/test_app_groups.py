"""The groups of one app's agents share its part of the processors, however many they are."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from clawdforge.drivers.processes import group_trees
from clawdforge.drivers.processes.cgroups import Group, find_cgroups
from clawdforge.drivers.processes.group_trees import FAMILY, STARTING, Ceilings, find_hierarchies
from clawdforge.drivers.processes.helpers import Helpers, hold_folder
from clawdforge.drivers.processes.launching import EXECUTABLE
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.spawner import Spawner
from tests.needs import needs
from tests.unit.contained import BOOT, SESSION, Bench, bench_on, groups_of, until

pytestmark = [
    needs("cgroups"),
    pytest.mark.skipif(
        not any(group_trees.SHARED in found.bounds for found in find_hierarchies()),
        reason="this machine has no controller of processors for us",
    ),
]
SPIN = "print('here', flush=True)\nwhile True: pass"
WAIT = "print('here', flush=True)\ninput()"


@pytest.fixture(params=["tree", pytest.param("bwrap", marks=needs("bwrap"))])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        groups = find_cgroups(bench.data, BOOT, Ceilings(processes=200, memory=200 << 20))
        bench.spawner = Spawner(bench.spawner.containment, bench.data, BOOT, groups=groups)
        yield bench


async def start(bench: Bench, app: str, code: str) -> AgentProcess:
    process = await bench.spawner.spawn(
        [str(EXECUTABLE), "-I", "-S", "-c", code],
        cwd=bench.workspace,
        home=bench.home,
        env=bench.env(),
        tag=SESSION,
        app=app,
    )
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"here\n"
    return process


def families(data: Path) -> list[Path]:
    return [folder for folder in groups_of(data) if FAMILY in folder.name]


async def test_many_agents_of_one_app_get_no_more_than_one_of_another(bench: Bench) -> None:
    """They are all on one processor, and what each app got of it is counted by the kernel."""
    crowd = [await start(bench, "crowd", SPIN) for _ in range(4)]
    lone = await start(bench, "lone", SPIN)
    (processor, *_) = psutil.Process().cpu_affinity()
    spinning = {one.pid: find_spinning(one.pid) for one in (*crowd, lone)}
    for process in spinning.values():
        process.cpu_affinity([processor])

    def used(agents: list[AgentProcess]) -> float:
        return sum(spinning[one.pid].cpu_times().user for one in agents)

    before = used(crowd), used([lone])
    try:
        await until(lambda: used([lone]) > before[1] + 0.5)  # half a second, however long that takes
        theirs = used(crowd) - before[0]
    finally:
        await asyncio.gather(*(one.close(eof_grace=0, term_grace=0) for one in (*crowd, lone)))
    assert theirs < 1.0  # with a part for each, it would be two seconds
    assert not groups_of(bench.data)


def find_spinning(pid: int) -> psutil.Process:
    """The lowest of them: what stands above it names it in its own command line."""
    return psutil.Process(pid).children(recursive=True)[-1]


async def test_what_keeps_an_agent_is_in_its_apps_part_and_not_in_its_limits(bench: Bench) -> None:
    """Else a crowd of starts would have as much of the processors as it likes."""
    process = await start(bench, "app", WAIT)
    (family,) = families(bench.data)
    starting = (family / STARTING / "cgroup.procs").read_text().split()
    assert str(process.pid) in starting
    limited = [folder for folder in groups_of(bench.data) if folder.parent == family]
    assert len(limited) == 1
    assert str(process.pid) not in (limited[0] / group_trees.INNER / "cgroup.procs").read_text().split()
    await process.close()
    assert not groups_of(bench.data)


async def test_an_apps_folder_may_go_while_another_agent_of_it_is_started(tmp_path: Path) -> None:
    groups = find_cgroups(tmp_path, BOOT, Ceilings(processes=20, memory=50 << 20))

    def come_and_go(worker: int) -> None:
        for number in range(50):
            groups.make(f"{worker}-{number}", app="app").end_now()

    with ThreadPoolExecutor(4) as threads:
        await asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(threads, come_and_go, n) for n in range(4))
        )
    assert not groups_of(tmp_path)


async def test_a_helper_has_its_apps_part(tmp_path: Path) -> None:
    groups = find_cgroups(tmp_path, BOOT, Ceilings(processes=20, memory=50 << 20))
    with hold_folder(tmp_path, "/folder") as folder:
        said = Helpers(None, groups=groups).run(
            ["/bin/cat", "/proc/self/cgroup"], [folder], cwd=folder, env={}, timeout=60, app="app"
        )
    assert FAMILY.encode() in said
    assert not groups_of(tmp_path)


def test_an_agent_starts_while_the_last_helper_of_its_app_ends(tmp_path: Path) -> None:
    """What ended took the folder away in which the other was about to start."""
    groups = find_cgroups(tmp_path, BOOT, Ceilings(processes=20, memory=50 << 20))
    starting, ending = (groups.make(name, app="app") for name in ("starting", "ending"))
    ending.end_now()
    said = run(starting, ["/bin/cat", "/proc/self/cgroup"], {})
    starting.end_now()
    assert STARTING in said
    assert run(starting, ["/bin/echo", "here"], {}) == "here\n"  # its app's part is no condition
    assert not groups_of(tmp_path)


def test_an_agent_gets_all_its_variables(tmp_path: Path) -> None:
    """Some shells drop those whose names they cannot have themselves."""
    groups = find_cgroups(tmp_path, BOOT, Ceilings(processes=20, memory=50 << 20))
    group = groups.make("one", app="app")
    env = {"npm_config_//packages.example/:_token": "secret", "PLAIN": "too"}
    try:
        found = run(group, ["/usr/bin/env"], env).splitlines()
    finally:
        group.end_now()
    assert set(found) == {f"{name}={value}" for name, value in env.items()}


def test_a_group_that_cannot_be_in_its_apps_folder_is_made_beside_it(tmp_path: Path) -> None:
    groups = find_cgroups(tmp_path, BOOT, Ceilings(processes=20, memory=50 << 20))
    first = groups.make("one", app="app")
    places = {folder for folder in groups_of(tmp_path) if folder.parent.name.count(FAMILY)}
    others = {folder for folder in groups_of(tmp_path) if folder.name.endswith("-one")} - places
    for folder in others:  # so that only in the app's folder is something in the way
        group_trees.remove_group(folder)
    second = groups.make("one", app="app")
    beside = {folder for folder in groups_of(tmp_path) if folder.name.endswith("-one")} - places
    second.end_now()
    first.end_now()
    assert len(beside) == len(places) + len(others)
    assert not groups_of(tmp_path)


def run(group: Group, command: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(group.put_first(command, env), env=env, capture_output=True, check=True, timeout=60)
    return done.stdout.decode()
