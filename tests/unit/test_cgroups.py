"""Groups of agents: their limits hold, they go with the agent, and a dead server's are ended by the next."""

import asyncio
import errno
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from clawdforge.drivers.processes import cgroups, group_trees
from clawdforge.drivers.processes.cgroups import find_cgroups
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.survivors import folder_id
from clawdforge.wire.errors import AgentStartFailed
from tests.needs import needs
from tests.unit.contained import BOOT, LANDLOCK, SESSION, Bench, bench_on, groups_of, until

CEILINGS = Ceilings(processes=200, memory=200 << 20)
NOBODY = 65534

# Each starts more of itself for as long as it lives, and listens to nobody. Other tests go before them.
BREED = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
os.nice(19)
end = time.monotonic() + 60
while time.monotonic() < end:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        time.sleep(0.001)
"""
DIE_AND_BREED = BREED.replace(
    "os.setsid()", "os.setsid()\n        elif os.getpid() % 2:\n            os._exit(0)"
)


@pytest.fixture(
    params=["tree", LANDLOCK, *(pytest.param(kind, marks=needs("bwrap")) for kind in ("bwrap", "bwrap-full"))]
)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        bench.spawner = Spawner(
            bench.spawner.containment, bench.data, BOOT, groups=find_cgroups(bench.data, BOOT, CEILINGS)
        )
        yield bench


def inside(data: Path) -> int:
    found = (folder / group_trees.INNER / "cgroup.procs" for folder in groups_of(data))
    return max((len(file.read_text().split()) for file in found), default=0)


async def member(group: cgroups.Group) -> asyncio.subprocess.Process:
    """A process in the group that nobody else knows of: it has no tag."""
    command = [sys.executable, "-c", f"{cgroups.TRY}\nprint(flush=True)\nsys.stdin.read()"]
    with group.open_join_fds() as join_fds:
        process = await asyncio.create_subprocess_exec(
            *command, *map(str, join_fds), pass_fds=join_fds, env={}, stdin=PIPE, stdout=PIPE
        )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"\n"
    return process


@needs("cgroups")
async def test_where_processors_are_short_an_agent_has_less_than_the_server(bench: Bench) -> None:
    """Each session of processes had as much as the server, and an agent can begin any number of them."""
    process = await bench.spawn(sys.executable, "-c", "print('here', flush=True); input()")
    await asyncio.wait_for(process.stdout.read(4), 60)
    names = {name for name, _ in group_trees.WEIGHTS.values()}
    told = {
        path.name: path.read_text().strip()
        for folder in groups_of(bench.data)
        for path in folder.glob("cpu.*")
    }
    offered = [found for found in group_trees.find_hierarchies() if group_trees.SHARED in found.bounds]
    assert {name: text for name, text in told.items() if name in names} == dict(
        group_trees.WEIGHTS[hierarchy.version] for hierarchy in offered
    )
    await process.close()


@needs("cgroups")
async def test_processes_are_counted_and_bounded(bench: Bench) -> None:
    code = "import os, time\nfor n in range(3000):\n if os.fork() == 0: time.sleep(60)"
    process = await bench.spawn(sys.executable, "-c", code)
    assert await asyncio.wait_for(process.wait(), 60) == 1
    await process.close()
    assert "Resource temporarily unavailable" in process.stderr_tail()
    assert not groups_of(bench.data)


@needs("cgroups")
async def test_memory_is_bounded_and_the_end_says_so(bench: Bench) -> None:
    code = "held = []\nfor _ in range(100): held.append(b'x' * (10 << 20))\nprint('all')"
    process = await bench.spawn(sys.executable, "-c", code)
    assert await asyncio.wait_for(process.stdout.read(), 60) == b""
    assert await asyncio.wait_for(process.wait(), 60) == 137
    assert "probably killed for using too much memory; its limit is 200 MiB" in process.stderr_tail()
    await process.close()
    assert not groups_of(bench.data)


@needs("cgroups")
async def test_what_is_killed_below_a_living_program_is_told_as_well(bench: Bench) -> None:
    """As with acpx, whose agent may die of it while what started it lives on."""
    code = "held = [b'x' * (10 << 20) for _ in range(100)]"
    line = f'"$0" -c "{code}"; printf "no end of line" >&2; echo over; read line'
    process = await bench.spawn("sh", "-c", line, sys.executable)
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"over\n"
    assert process.returncode is None
    limit = "its limit is 200 MiB (CLAWDFORGE_AGENT_MAX_MEMORY_BYTES)"
    note = f"[clawdforge] probably killed for using too much memory; {limit}"
    await until(lambda: process.stderr_tail().endswith(f"no end of line\n{note}"))
    await process.close()
    assert process.stderr_tail().endswith(f"no end of line\n{note}")


@needs("cgroups")
@pytest.mark.parametrize("code", [BREED, DIE_AND_BREED], ids=["breed", "die-and-breed"])
async def test_a_pause_and_an_end_in_the_middle_of_a_bomb_are_bounded(bench: Bench, code: str) -> None:
    process = await bench.spawn(sys.executable, "-c", code)
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
    begun = time.monotonic()
    with process.pause():
        assert time.monotonic() - begun < 40
    await process.close(eof_grace=0.1, term_grace=0.1)
    assert time.monotonic() - begun < 60
    assert not groups_of(bench.data)
    assert not bench.tagged()


@needs("cgroups")
async def test_only_the_agent_is_in_its_group(bench: Bench) -> None:
    process = await bench.spawn("sh", "-c", "echo up; read line")
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"up\n"
    assert inside(bench.data) == 1
    await process.close()
    assert not groups_of(bench.data)


@needs("cgroups")
async def test_what_is_started_beside_an_agent_counts_as_its_own(bench: Bench) -> None:
    """And its end leaves the group to the agent."""
    agent = await bench.spawn("sh", "-c", "echo up; read line")
    assert await asyncio.wait_for(agent.stdout.readline(), 60) == b"up\n"
    made = groups_of(bench.data)
    spawn = partial(
        bench.spawner.spawn,
        cwd=bench.workspace,
        home=bench.home,
        env=bench.env(),
        tag=SESSION,
        beside=agent,
    )
    command = await spawn(["sh", "-c", "echo up; read line"])
    assert await asyncio.wait_for(command.stdout.readline(), 60) == b"up\n"
    assert groups_of(bench.data) == made
    assert inside(bench.data) == 2
    await command.close()
    assert inside(bench.data) == 1
    with pytest.raises(AgentStartFailed, match="null byte"):
        await spawn(["cat", "\0"])
    assert agent.returncode is None
    assert groups_of(bench.data) == made
    await agent.close()
    assert not groups_of(bench.data)
    with pytest.raises(AgentStartFailed, match="No such file"):
        await spawn(["cat"])


@needs("cgroups")
async def test_a_dead_servers_groups_are_ended_and_others_are_spared(tmp_path: Path) -> None:
    async with bench_on(tmp_path / "a", "tree") as dead, bench_on(tmp_path / "b", "tree") as other:
        group = find_cgroups(dead.data, "dead", CEILINGS).make("1")
        beside = find_cgroups(other.data, "dead", CEILINGS).make("1")
        orphan = await member(group)
        spawner = Spawner(
            dead.spawner.containment, dead.data, BOOT, groups=find_cgroups(dead.data, BOOT, CEILINGS)
        )
        mine = await spawner.spawn(["cat"], cwd=dead.workspace, home=dead.home, env=dead.env(), tag=SESSION)
        await spawner.end_orphans()
        assert await asyncio.wait_for(orphan.wait(), 60) == -9
        assert mine.returncode is None
        assert {BOOT in folder.name for folder in groups_of(dead.data)} == {True}
        assert groups_of(other.data)
        await mine.close()
        assert not groups_of(dead.data)
        assert beside.remove()


@needs("cgroups")
async def test_a_server_that_is_still_leaving_is_spared(tmp_path: Path) -> None:
    groups = find_cgroups(tmp_path, BOOT, CEILINGS)
    before = groups.make("0")
    folder = groups_of(tmp_path)[0].with_name(f"clawdforge-{folder_id(tmp_path)}-a-server")
    before.remove()
    folder.mkdir()
    code = f"print(open({str(folder / 'cgroup.procs')!r}, 'w').write('0'), flush=True)\ninput()"
    leaving = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=PIPE, stdout=PIPE)
    assert leaving.stdout is not None
    assert await leaving.stdout.readline() == b"1\n"
    groups.end_leftovers()
    assert folder.exists()
    await leaving.communicate(b"\n")
    assert leaving.returncode == 0
    groups.end_leftovers()
    assert not groups_of(tmp_path)


@needs("cgroups")
def test_groups_of_other_folders_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them, left by killed servers, took a third of a second at every start."""
    groups = find_cgroups(tmp_path, BOOT, CEILINGS)
    made = groups.make("0")
    beside = groups_of(tmp_path)[0].parent
    made.remove()
    other, left = beside / "clawdforge-other-a-1", beside / f"clawdforge-{folder_id(tmp_path)}-b-1"
    looked: list[str] = []
    scan = os.scandir

    def note(path: str) -> object:
        looked.append(str(path))
        return scan(path)

    try:
        other.mkdir()
        left.mkdir()
        monkeypatch.setattr(os, "scandir", note)
        groups.end_leftovers()
        assert str(beside) in looked
        assert str(other) not in looked
        assert not left.exists()
    finally:
        for folder in (left, other):
            if folder.exists():
                folder.rmdir()


def test_a_folder_is_not_taken_for_another_of_the_same_path(tmp_path: Path) -> None:
    data, away = tmp_path / "data", tmp_path / "away"
    data.mkdir()
    first = folder_id(data)
    assert folder_id(data / ".." / "data") == first
    data.rename(away)
    data.mkdir()
    assert folder_id(data) != first


@needs("cgroups")
async def test_a_group_is_told_from_one_whose_name_begins_alike(tmp_path: Path) -> None:
    groups = find_cgroups(tmp_path, BOOT, CEILINGS)
    short, long = groups.make("1"), groups.make("12")
    orphan = await member(long)
    names = {folder.name for folder in groups_of(tmp_path)}
    assert {name for name in names if group_trees._is_in(orphan.pid, name)} == {max(names, key=len)}
    await asyncio.gather(short.end(), long.end())
    assert await asyncio.wait_for(orphan.wait(), 60) == -9
    assert not groups_of(tmp_path)


@needs("cgroups")
async def test_an_agent_without_its_group_is_not_started(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "tree") as bench:
        groups = find_cgroups(bench.data, BOOT, CEILINGS)
        spawner = Spawner(bench.spawner.containment, bench.data, BOOT, groups=groups)
        taken = groups.make("1")
        with pytest.raises(AgentStartFailed, match=r"could not be made: .*File exists.*; restart"):
            await spawner.spawn(["cat"], cwd=bench.workspace, home=bench.home, env=bench.env(), tag=SESSION)
        assert taken.remove()


@needs("cgroups")
async def test_a_start_that_fails_leaves_no_group(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentStartFailed, match="null byte"):
        await bench.spawn("cat", "a\0b")
    with pytest.raises(AgentStartFailed, match="null byte"):
        await bench.spawn("cat", WORD="a\0b")
    assert not groups_of(bench.data)

    def no_descriptor(_pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", no_descriptor)
        with pytest.raises(AgentStartFailed, match="Too many open files"):
            await bench.spawn("sh", "-c", "sleep 60")
    await until(lambda: not bench.tagged())
    following = find_cgroups(bench.data, "next", CEILINGS)

    def are_gone() -> bool:
        """A server looks for a bounded time, and the one after it looks again."""
        following.end_leftovers()
        return not groups_of(bench.data)

    await until(are_gone)


@needs("cgroups")
async def test_an_end_that_fails_still_removes_the_group(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await bench.spawn("true")
    await process.wait()

    async def broken(*_: float) -> bool:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(process, "_wait_ended", broken)
        with pytest.raises(OSError, match="Too many open files"):
            await process.close()
        assert not groups_of(bench.data)
    process._closer = None  # for the end of the test


@needs("cgroups")
async def test_too_little_memory_is_an_error_and_not_no_limit(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "tree") as bench:
        groups = find_cgroups(bench.data, BOOT, Ceilings(processes=200, memory=1 << 20))
        assert groups.memory == 1 << 20
        bench.spawner = Spawner(bench.spawner.containment, bench.data, BOOT, groups=groups)
        process = await bench.spawn(sys.executable, "-c", "pass")
        assert await asyncio.wait_for(process.wait(), 60) == 137
        assert "probably killed for using too much memory; its limit is 1 MiB" in process.stderr_tail()
        await process.close()
        assert not groups_of(bench.data)


async def test_a_runner_that_always_forks_ahead_does_not_hold_a_pause_up(tmp_path: Path) -> None:
    """It is never more than two processes, so it needs no group; its parent is dead whenever one looks."""
    code = "import os\nprint('ready', flush=True)\nos.setsid()\nwhile True:\n if os.fork(): os._exit(0)"
    async with bench_on(tmp_path, "tree") as bench:
        process = await bench.spawn("sh", "-c", f'{sys.executable} -c "{code}"; read line')
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
        begun = time.monotonic()
        for _ in range(5):
            with process.pause():
                pass
        assert time.monotonic() - begun < 40
        await process.close(eof_grace=0.1, term_grace=0.1)
        assert time.monotonic() - begun < 40
        assert not bench.tagged()
