"""Homes and their copies: what is kept, what comes back, what is bounded, what a crash leaves."""

import asyncio
import contextlib
import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from clawdforge.core import ports
from clawdforge.drivers.folders.home_copies import FEW_ENTRIES, Copies, NoCopy
from clawdforge.drivers.folders.homes import HomeFolders
from tests.unit.contained import SESSION, Bench, beats, bench_on, until
from tests.unit.homes_bench import AGENT, OTHER, homes_on, kept, objects, tree


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def homes(tmp_path: Path) -> AsyncIterator[HomeFolders]:
    async with homes_on(tmp_path) as folders:
        yield folders


async def test_it_is_what_core_asks_for(homes: HomeFolders) -> None:
    port: ports.Homes = homes
    home = await port.prepare(SESSION, AGENT)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700


async def test_a_home_comes_back_as_it_was(homes: HomeFolders) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "log").write_text("one")
    (home / "deep" / "er").mkdir(parents=True)
    script = home / "deep" / "er" / "run"
    script.write_text("#!/bin/sh")
    script.chmod(0o750)
    os.utime(script, ns=(1_000_000_000, 1_000_000_000))
    (home / "empty").mkdir()
    (home / b"na\xefve".decode(errors="surrogateescape")).write_text("odd name")
    before = tree(home)
    await kept(homes, 1)
    (home / "log").write_text("one and two")
    script.unlink()
    (home / "new").write_text("x")
    await kept(homes, 2)
    assert await homes.restore(SESSION, 1) == "agent-1"
    assert tree(home) == before
    assert script.stat().st_mtime_ns == 1_000_000_000
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert (home / "empty").is_dir()
    assert await homes.restore(SESSION, 2) == "agent-2"
    assert (home / "log").read_text() == "one and two"


async def test_writes_in_place_do_not_reach_a_copy(homes: HomeFolders) -> None:
    home = await homes.prepare(SESSION, AGENT)
    file = home / "database"
    file.write_bytes(b"a" * 10_000)
    await kept(homes, 1)
    with file.open("r+b") as handle:
        handle.write(b"b" * 10_000)
    await homes.restore(SESSION, 1)
    assert file.read_bytes() == b"a" * 10_000
    with file.open("r+b") as handle:
        handle.write(b"c" * 10_000)
    await homes.restore(SESSION, 1)
    assert file.read_bytes() == b"a" * 10_000


async def test_turn_zero_is_an_empty_home(homes: HomeFolders) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "memory").write_text("x")
    assert await homes.restore(SESSION, 0) is None
    assert sorted(path.name for path in home.iterdir()) == [".agent", ".tmp"]
    assert tree(home) == {".agent/token.json": str(homes._operator_home / ".agent" / "token.json")}


async def test_without_a_copy_nothing_is_put_back(homes: HomeFolders) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "memory").write_text("x")
    assert await homes.restore(SESSION, 3) is None
    assert (home / "memory").read_text() == "x"


async def test_links_stay_links_and_special_files_are_left_out(homes: HomeFolders, tmp_path: Path) -> None:
    home = await homes.prepare(SESSION, AGENT)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("canary")
    (home / "out").symlink_to(secret)
    (home / "dangling").symlink_to("nowhere")
    os.mkfifo(home / "fifo")
    (home / "plain").write_text("x")
    await kept(homes, 1)
    await homes.restore(SESSION, 1)
    assert (home / "out").readlink() == secret
    assert (home / "dangling").readlink() == Path("nowhere")
    assert not (home / "fifo").exists()
    assert (secret / "key").read_text() == "canary"


async def test_caches_are_no_part_of_a_copy(homes: HomeFolders, data: Path) -> None:
    home = await homes.prepare(SESSION, AGENT)
    for name in (".npm", ".cache", ".tmp"):
        (home / name).mkdir(exist_ok=True)
        (home / name / "big").write_text("x")
    (home / "own").mkdir()
    (home / "own" / ".cache").write_text("deeper ones are")
    await kept(homes, 1)
    assert len(objects(data)) == 1


async def test_an_agents_own_caches_are_left_out_and_what_is_beside_them_is_not(homes: HomeFolders) -> None:
    agent = replace(AGENT, quirks={"caches": [".config/a/node_modules"]})
    home = await homes.prepare(SESSION, agent)
    files = (".config/a/node_modules/x", ".config/a/settings", "node_modules/y", ".local/share/uv/z")
    for name in files:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("1")
    await kept(homes, 1)
    await homes.restore(SESSION, 1)
    assert [name for name in files if (home / name).exists()] == [".config/a/settings", "node_modules/y"]


async def test_another_agent_of_the_session_leaves_out_its_own_caches(homes: HomeFolders) -> None:
    """Not those of the one before, whose folder may be its memory."""
    for number, name in enumerate(("a", "b"), 1):
        home = await homes.prepare(SESSION, replace(AGENT, name=name, quirks={"caches": [name]}))
        for cache in ("a", "b"):
            (home / cache).mkdir(exist_ok=True)
            (home / cache / "x").write_text(name)
        await kept(homes, number)
    await homes.restore(SESSION, 2)
    assert ((home / "a" / "x").exists(), (home / "b").exists()) == (True, False)


async def test_an_unchanged_file_is_stored_once(homes: HomeFolders, data: Path) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "same").write_text("same")
    (home / "log").write_text("1")
    changed = (home / "log").stat().st_ctime_ns
    await until(lambda: time.time_ns() > changed + 100_000_000)
    await kept(homes, 1)
    first = objects(data)
    await kept(homes, 2)
    assert objects(data) == first
    (home / "log").write_text("2")
    await kept(homes, 3)
    assert len(objects(data)) == 3
    assert await homes.restore(SESSION, 1) == "agent-1"
    assert tree(home) == {
        ".agent/token.json": str(data.parent / "operator/.agent/token.json"),
        "same": "same",
        "log": "1",
    }


async def test_the_number_of_copies_is_bounded_and_the_oldest_go(homes: HomeFolders, data: Path) -> None:
    home = await homes.prepare(SESSION, AGENT)
    for turn in range(1, 9):
        (home / "log").write_text(str(turn))
        await kept(homes, turn)
    assert [await homes.restore(SESSION, turn) for turn in (3, 4, 8)] == [None, "agent-4", "agent-8"]
    assert len(objects(data)) == 5


async def test_the_bytes_of_all_copies_are_bounded(homes: HomeFolders) -> None:
    home = await homes.prepare(SESSION, AGENT)
    for turn in range(1, 4):
        (home / "log").write_bytes(bytes([turn]) * 400_000)
        await kept(homes, turn)
    assert await homes.restore(SESSION, 1) is None
    assert await homes.restore(SESSION, 2) == "agent-2"
    assert await homes.restore(SESSION, 3) == "agent-3"


async def test_a_home_that_is_too_large_costs_the_copy_and_nothing_else(
    homes: HomeFolders, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "small").write_text("x")
    await kept(homes, 1)
    with (home / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    await kept(homes, 2)
    assert "the home was not copied" in caplog.text
    assert len(objects(data)) == 1
    assert await homes.restore(SESSION, 2) is None
    assert await homes.restore(SESSION, 1) == "agent-1"


async def test_folders_deeper_than_anything_cost_the_copy_and_can_be_removed(
    homes: HomeFolders, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = await homes.prepare(SESSION, AGENT)
    fd = os.open(home, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    await kept(homes, 1)
    assert "deep" in caplog.text
    await homes.remove(SESSION)
    assert list((data / "homes").iterdir()) == []
    assert list((data / "copies").iterdir()) == []


@pytest.mark.parametrize(
    "damage", ["manifest cut", "manifest gone", "object gone", "object short", "object zeroed"]
)
async def test_a_torn_copy_is_noticed_and_the_home_stays(homes: HomeFolders, data: Path, damage: str) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "log").write_text("one")
    await kept(homes, 1)
    (home / "log").write_text("now")
    manifest = data / "copies" / SESSION / "1.json"
    (only,) = (data / "copies" / SESSION / "files").iterdir()
    match damage:
        case "manifest cut":
            manifest.write_bytes(manifest.read_bytes()[:-20])
        case "manifest gone":
            manifest.unlink()
        case "object gone":
            only.unlink()
        case "object short":
            only.write_text("o")
        case "object zeroed":
            only.write_bytes(b"\0\0\0")
    assert await homes.restore(SESSION, 1) is None
    assert (home / "log").read_text() == "now"
    assert [path.name for path in (data / "homes").iterdir()] == [SESSION]


async def test_what_a_crash_left_half_done_is_swept(homes: HomeFolders, data: Path) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "log").write_text("one")
    await kept(homes, 1)
    whole = objects(data)
    copies = data / "copies" / SESSION
    (copies / "unsettled").touch()
    (copies / "files" / "half").write_text("x")
    (copies / "2.tmp").write_text("x")
    (data / "homes" / ".new-1").mkdir()
    (data / "homes" / ".gone-2").mkdir()
    home.rename(data / "homes" / f".old-{SESSION}")
    homes.clean_up_unfinished()
    assert objects(data) == whole
    assert sorted(path.name for path in copies.iterdir()) == ["1.json", "files"]
    assert [path.name for path in (data / "homes").iterdir()] == [SESSION]
    assert (home / "log").read_text() == "one"


async def test_a_branch_has_the_home_of_that_turn_and_a_copy_of_its_own(homes: HomeFolders) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (home / "log").write_text("one")
    await kept(homes, 1)
    (home / "log").write_text("two")
    await kept(homes, 2)
    assert await homes.branch(SESSION, OTHER, 1) == "agent-1"
    other = await homes.prepare(OTHER, AGENT)
    assert (other / "log").read_text() == "one"
    (other / "log").write_text("another way")
    assert (home / "log").read_text() == "two"
    await homes.remove(SESSION)
    assert await homes.restore(OTHER, 1) == "agent-1"
    assert (other / "log").read_text() == "one"
    assert await homes.branch(SESSION, "fork-2", 7) is None


@pytest.mark.parametrize("bad", ["", ".", "..", "../x", "a/b", "/etc", "a.b", "a\0b", "x" * 65, "é"])
async def test_a_session_id_that_is_no_plain_name_is_refused(homes: HomeFolders, bad: str) -> None:
    with pytest.raises(ValueError, match="session id"):
        await homes.prepare(bad, AGENT)
    with pytest.raises(ValueError, match="session id"):
        await homes.remove(bad)
    with pytest.raises(ValueError, match="session id"):
        await homes.branch(bad, SESSION, 1)


class Paused:
    """Stands for a live agent: all that `keep` asks of one is `paused`."""

    def __init__(self, bench: Bench, process: Any) -> None:
        self._bench, self._process = bench, process
        self.seen: list[dict[str, int]] = []

    def pause(self) -> AbstractContextManager[None]:
        return self._pause()

    @contextlib.contextmanager
    def _pause(self) -> Iterator[None]:
        with self._process.pause():
            self.seen.append(beats(self._bench.home))
            yield
            self.seen.append(beats(self._bench.home))


class HeldUp:
    """A live agent, and a copy of its home that has not begun before `go_on` is set."""

    def __init__(self) -> None:
        self.paused, self.go_on = threading.Event(), threading.Event()
        self.runs_again = False

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        self.paused.set()
        self.go_on.wait(60)
        try:
            yield
        finally:
            self.runs_again = True


async def test_the_agent_stands_still_while_its_home_is_copied(tmp_path: Path) -> None:
    async with bench_on(tmp_path, "tree") as bench:
        homes = HomeFolders(bench.data, operator_home=tmp_path)
        for number in range(FEW_ENTRIES):  # more than is looked at twice instead
            (bench.home / f"more{number}").write_text("x")
        process = await bench.hostile_in(bench.home)
        live = Paused(bench, process)
        await homes.copy_home(SESSION, 1, "agent-1", cast("ports.LiveAgent", live))
        at_copy = live.seen[0]
        assert live.seen == [at_copy, at_copy]
        await process.close(eof_grace=0, term_grace=0)
        await homes.close()
        assert await homes.restore(SESSION, 1) == "agent-1"
        assert beats(bench.home) == at_copy


async def test_a_cancelled_copy_lets_the_agent_run_again(homes: HomeFolders, tmp_path: Path) -> None:
    home = await homes.prepare(SESSION, AGENT)
    for number in range(FEW_ENTRIES + 1):  # so that it has to stand still
        (home / str(number)).write_text("x")
    live = HeldUp()
    task = asyncio.create_task(homes.copy_home(SESSION, 1, "agent-1", cast("ports.LiveAgent", live)))
    await asyncio.to_thread(live.paused.wait, 60)
    task.cancel()
    await asyncio.sleep(0)  # the cancel reaches the copy, whose thread waits for us
    live.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert live.runs_again
    assert await homes.restore(SESSION, 1) is None
    await kept(homes, 2)
    assert await homes.restore(SESSION, 2) == "agent-2"
    assert len(objects(tmp_path / "data")) == FEW_ENTRIES + 1


def test_a_copy_that_is_stopped_half_way_leaves_no_objects(tmp_path: Path) -> None:
    """The next copy clears the mark, so that nobody would ever look for them."""

    class StopsAfterThree(threading.Event):
        looks = 0

        def is_set(self) -> bool:
            self.looks += 1
            return self.looks > 3

    home = tmp_path / "home"
    home.mkdir()
    for number in range(10):
        (home / str(number)).write_text("x")
    copies = Copies(tmp_path / "copies", max_copies=5, max_bytes=1 << 20, excluded=())
    with pytest.raises(NoCopy):
        copies.take(home, 1, "agent-1", StopsAfterThree())
    assert list((tmp_path / "copies" / "files").iterdir()) == []
    taken = copies.take(home, 2, "agent-2", threading.Event())
    assert len(taken.fresh) == 10


async def test_a_copy_of_many_files_is_quick(homes: HomeFolders) -> None:
    home = await homes.prepare(SESSION, AGENT)
    for number in range(500):
        (home / str(number)).write_text("x" * 100)
    before = time.process_time()  # of this process: what others do beside it does not count
    await homes.copy_home(SESSION, 1, "agent-1", None)
    assert time.process_time() - before < 2.0
