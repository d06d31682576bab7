"""Which user an agent runs as: the table of apps, and what stands between two apps because of it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clawdforge.drivers.folders.ownership import Ownership
from clawdforge.drivers.processes.containment import find_containment
from clawdforge.drivers.processes.environment import TEMPORARY
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.user_wall import try_users
from clawdforge.drivers.processes.users import AS_SERVER, TABLE, Numbers, RunsAs, User, UserTable
from clawdforge.wire.errors import AgentStartFailed, WorkspaceChanged
from tests.needs import needs
from tests.unit.contained import SESSION, Bench, bench_on

FIRST = 1_900_000_000
SECRET = "of-the-other-app"


def table(folder: Path, count: int = 1000) -> UserTable:
    return UserTable(folder, Numbers(FIRST, FIRST + count - 1))


def test_an_app_keeps_its_user_and_no_other_gets_it(tmp_path: Path) -> None:
    first = table(tmp_path)
    one, two = first.user_of("one"), first.user_of("two")
    assert len({one, two}) == 2
    again = table(tmp_path)
    assert (again.user_of("two"), again.user_of("one")) == (two, one)
    assert again.user_of("three") not in (one, two)


def test_apps_that_come_at_once_get_different_users(tmp_path: Path) -> None:
    users = table(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(users.user_of, [f"app-{n % 40}" for n in range(200)]))
    assert len(set(found)) == 40
    assert {table(tmp_path).user_of(f"app-{n}") for n in range(40)} == set(found)


def test_a_range_that_is_used_up_is_told(tmp_path: Path) -> None:
    users = table(tmp_path, count=2)
    kept = [users.user_of(name) for name in ("a", "b")]
    with pytest.raises(AgentStartFailed, match="CLAWDFORGE_AGENT_UIDS to a larger range"):
        users.user_of("c")
    assert [users.user_of(name) for name in ("a", "b")] == kept


def test_users_of_the_machine_are_not_given_out(tmp_path: Path) -> None:
    assert UserTable(tmp_path, Numbers(1, 70_000)).user_of("a").uid not in {0, 1, 2, 65534}


def test_an_app_gets_another_user_with_another_range_and_the_old_one_stays_its_own(tmp_path: Path) -> None:
    old = UserTable(tmp_path, Numbers(FIRST, FIRST + 9)).user_of("a")
    moved = UserTable(tmp_path, Numbers(FIRST + 100, FIRST + 109))
    assert moved.user_of("a").uid == FIRST + 100
    back = UserTable(tmp_path, Numbers(FIRST, FIRST + 9))
    assert back.user_of("b") != old
    assert back.user_of("a") == old


def test_a_data_folder_that_moves_keeps_its_users(tmp_path: Path) -> None:
    here, there = (Numbers.parse("auto", tmp_path / name) for name in ("here", "there"))
    assert here.first != there.first
    before = UserTable(tmp_path, here).user_of("a")
    assert UserTable(tmp_path, there).user_of("a") == before


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"apps": {"a": []}}', '{"apps": {"a": [0]}}', '{"apps": 1}']
)
def test_a_damaged_table_starts_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / TABLE).write_text(text)
    with pytest.raises(AgentStartFailed, match="cannot be read; put a copy of it back"):
        table(tmp_path).user_of("a")
    assert (tmp_path / TABLE).read_text() == text


def test_what_a_crash_leaves_of_a_write_does_not_count(tmp_path: Path) -> None:
    kept = table(tmp_path).user_of("a")
    (tmp_path / f".{TABLE}.new").write_text('{"apps": {"a": [5')
    users = table(tmp_path)
    assert users.user_of("a") == kept
    users.user_of("b")
    assert set(json.loads((tmp_path / TABLE).read_text())["apps"]) == {"a", "b"}


def test_a_range_is_insisted_on_and_auto_is_not(tmp_path: Path) -> None:
    """`off` at the level of containment stands for whatever keeps users from working."""
    found = find_containment("off", bwrap="no-such-bwrap")
    for setting, refused in (("auto", False), ("off", False), ("200000-200009", True)):
        owners = Ownership.find(tmp_path, try_users(found, setting, tmp_path), setting)
        (tmp_path / "home").mkdir(exist_ok=True)

        def start(app: str, owners: Ownership = owners) -> RunsAs:
            return asyncio.run(owners.choose_user(app, tmp_path / "home", tmp_path / "home", None, ()))

        assert start("local") == AS_SERVER
        if refused:
            with pytest.raises(AgentStartFailed, match="CLAWDFORGE_AGENT_UIDS"):
                start("other")
        else:
            assert start("other") == AS_SERVER


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, "bwrap") as bench:
        yield bench


def owners(bench: Bench, setting: str = "auto") -> Ownership:
    return Ownership.find(bench.data, try_users(bench.spawner.containment, setting, bench.data), setting)


async def run(bench: Bench, runs_as: RunsAs, code: str, *words: str, readable: Sequence[Path] = ()) -> str:
    """What a Python program prints that is run as an agent."""
    process = await bench.spawner.spawn(
        [sys.executable, "-I", "-S", "-c", code, *words],
        cwd=bench.workspace,
        home=bench.home,
        env=bench.env(),
        tag=SESSION,
        needs=Needs(((sys.executable,),)),
        readable=readable,
        runs_as=runs_as,
    )
    try:
        said = await asyncio.wait_for(process.stdout.read(), 60)
        return said.decode() + process.stderr_tail()
    finally:
        await process.close()


READ = "import sys; print(open(sys.argv[1]).read())"


@needs("users")
@pytest.mark.parametrize("setting", ["auto", "off"])
async def test_a_mount_of_another_apps_home_is_of_no_use(bench: Bench, setting: str) -> None:
    """With the wall the mistake shows nothing; without it, it shows everything."""
    other = bench.data / "homes" / "other"
    other.mkdir(mode=0o700)
    (other / "secret").write_text(SECRET)
    found = owners(bench, setting)
    await found.choose_user("b", other, other, None, ())
    runs_as = await found.choose_user("a", bench.home, bench.workspace, None, ())
    said = await run(bench, runs_as, READ, str(other / "secret"), readable=[other])
    assert ("PermissionError" in said, SECRET in said) == (setting == "auto", setting == "off")


POWERS = """
import os, signal
said = open("/proc/self/status").read().split()
print(os.getresuid(), os.getresgid(), os.getgroups(), said[said.index("NoNewPrivs:") + 1])
kinds = ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")
print({said[said.index(name + ":") + 1].strip("0") for name in kinds})
for attempt in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.kill(1, 9)):
    try:
        attempt()
        print("got through")
    except PermissionError:
        pass
"""


@needs("users")
async def test_nothing_of_root_is_left(bench: Bench) -> None:
    runs_as = await owners(bench).choose_user("a", bench.home, bench.workspace, None, ())
    assert runs_as.user is not None
    uid = runs_as.user.uid
    assert await run(bench, runs_as, POWERS) == f"({uid}, {uid}, {uid}) ({uid}, {uid}, {uid}) [] 1\n{{''}}\n"


WORK = """
import os, pwd, grp, sys, tempfile
home, workspace = os.environ["HOME"], os.getcwd()
print(pwd.getpwuid(os.getuid()).pw_dir == home, grp.getgrgid(os.getgid()).gr_name)
for folder in (home, workspace, "/tmp", os.environ["TMPDIR"], "/dev/shm"):
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"x")
for name in ("/dev/stdout", "/dev/stderr", "/dev/null"):
    open(name, "w").close()
print("done")
"""


@needs("users")
async def test_it_can_work_as_before(bench: Bench) -> None:
    (bench.home / TEMPORARY).mkdir(mode=0o700)
    runs_as = await owners(bench).choose_user("a", bench.home, bench.workspace, None, ())
    assert await run(bench, runs_as, WORK) == "True agent\ndone\n"


@needs("users")
async def test_local_and_agents_without_a_sandbox_run_as_the_server(bench: Bench) -> None:
    found = owners(bench)
    assert await found.choose_user("local", bench.home, bench.workspace, None, ()) == AS_SERVER
    assert (await found.choose_user("a", bench.home, bench.workspace, None, ())).user is not None
    assert await found.choose_user("a", bench.home, bench.workspace, "off", ()) == AS_SERVER
    for folder in (bench.home, bench.workspace):
        (folder / "by-root").touch()
    runs_as = await found.choose_user("a", bench.home, bench.workspace, None, ())
    assert runs_as.user is not None
    for folder in (bench.home, bench.workspace):
        assert (folder / "by-root").stat().st_uid == runs_as.user.uid


@needs("users")
async def test_a_folder_of_the_operators_is_worked_in_as_its_owner(bench: Bench, tmp_path: Path) -> None:
    theirs, roots = tmp_path / "theirs", tmp_path / "roots"
    for folder in (theirs, roots):
        folder.mkdir()
        (folder / "file").touch()
    os.chown(theirs, 1234, 1235)
    found = owners(bench)
    assert (await found.choose_user("a", bench.home, theirs, None, ())).user == User(1234, 1235)
    assert bench.home.stat().st_uid == 1234
    assert (await found.choose_user("a", bench.home, roots, None, ())).user is None
    assert [(folder / "file").stat().st_uid for folder in (theirs, roots)] == [0, 0]


@needs("users")
async def test_a_program_that_only_root_may_run_is_told(bench: Bench) -> None:
    program = bench.workspace.parent / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    runs_as = await owners(bench).choose_user("a", bench.home, bench.workspace, None, ())
    with pytest.raises(AgentStartFailed, match=r"may not run it.*chmod -R o\+rX"):
        await bench.spawner.spawn(
            [str(program)],
            cwd=bench.workspace,
            home=bench.home,
            env=bench.env(),
            tag=SESSION,
            readable=[program],
            runs_as=runs_as,
        )


@needs("users")
async def test_a_folder_that_was_swapped_does_not_choose_the_user(bench: Bench) -> None:
    """Whoever it belonged to when it was looked at, the agent does not run as another than its owner."""
    runs_as = await owners(bench).choose_user("a", bench.home, bench.workspace, None, ())
    for folder in (bench.workspace, bench.home):
        before = folder.stat()
        os.chown(folder, 1234, 1234)
        with pytest.raises(WorkspaceChanged, match="does not belong to"):
            await run(bench, runs_as, "print()")
        os.chown(folder, before.st_uid, before.st_gid)
    assert await run(bench, runs_as, "print(1)") == "1\n"
