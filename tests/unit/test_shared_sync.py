"""One sync for everybody who waits, and pruning that no copy waits for."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clawdforge.drivers.folders import shared_sync
from clawdforge.drivers.folders.home_copies import Copies
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.folders.shared_sync import SharedSync
from tests.unit.contained import SESSION, until
from tests.unit.homes_bench import AGENT, homes_on, kept, objects, tree


@pytest.fixture
def sync() -> SharedSync:
    return SharedSync(ThreadPoolExecutor(2))


@pytest.fixture
async def homes(tmp_path: Path) -> AsyncIterator[HomeFolders]:
    async with homes_on(tmp_path) as folders:
        yield folders


class Disk:
    """A sync that takes as long as somebody says, and is counted."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = threading.Event()

    def sync(self) -> None:
        self.begun += 1
        assert self.go.wait(60)


async def test_those_who_come_while_one_runs_share_the_next(sync: SharedSync) -> None:
    disk = Disk()
    first = asyncio.create_task(sync.sync(disk.sync))
    await until(lambda: disk.begun == 1)
    others = [asyncio.create_task(sync.sync(disk.sync)) for _ in range(50)]
    await asyncio.sleep(0)
    disk.go.set()
    await first
    assert not any(task.done() for task in others)  # what they wrote may have come too late for it
    sync.hurry()
    await asyncio.gather(*others)
    assert disk.begun == 2


async def test_a_failure_is_told_to_all_of_them_and_to_nobody_after(sync: SharedSync) -> None:
    def fail() -> None:
        raise OSError("no disk")

    found = await asyncio.gather(*(sync.sync(fail) for _ in range(3)), return_exceptions=True)
    assert [str(error) for error in found] == ["no disk"] * 3
    sync.hurry()
    await sync.sync(lambda: None)


async def test_there_is_a_rest_unless_somebody_waits(
    sync: SharedSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_sync, "REST_SECS", 3600)
    await sync.sync(lambda: None)
    resting = asyncio.create_task(sync.sync(lambda: None))
    await asyncio.sleep(0.05)
    assert not resting.done()
    sync.hurry()
    await asyncio.wait_for(resting, 60)


async def test_who_gives_up_does_not_take_the_sync_from_the_others(sync: SharedSync) -> None:
    disk = Disk()
    one, other = (asyncio.create_task(sync.sync(disk.sync)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    disk.go.set()
    await other
    assert disk.begun == 1


async def test_a_copy_is_taken_while_old_ones_are_removed(
    homes: HomeFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pruning syncs a folder: the next prompt waited for that, every eleventh time."""
    home = await homes.prepare(SESSION, AGENT)
    for turn in range(1, 8):
        (home / "memory").write_text(f"turn {turn}")
        await kept(homes, turn)
    begun, go = threading.Event(), threading.Event()
    remove = Copies.remove_objects

    def wait(self: Copies, names: set[str]) -> None:
        begun.set()
        assert go.wait(60)
        remove(self, names)

    monkeypatch.setattr(Copies, "remove_objects", wait)
    (home / "memory").write_text("turn 8")
    await homes.copy_home(SESSION, 8, "agent-8", None)
    await until(begun.is_set)
    (home / "memory").write_text("turn 9")
    await asyncio.wait_for(homes.copy_home(SESSION, 9, "agent-9", None), 60)
    syncs: list[Copies] = []
    sync = Copies.make_durable

    def note(self: Copies) -> None:
        syncs.append(self)
        sync(self)

    monkeypatch.setattr(Copies, "make_durable", note)
    go.set()
    await homes.close()
    assert len(syncs) == 1  # of the copy that was taken meanwhile: nobody was left to do it
    assert len(objects(tmp_path / "data")) <= 7
    for turn in (8, 9):
        await homes.restore(SESSION, turn)
        assert tree(home)["memory"] == f"turn {turn}"
