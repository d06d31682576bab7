"""The lock of a home: nobody waits for one who waits for him, and no thread is left behind in the folder."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clawdforge.drivers.folders.home_lock import HomeLock, run_to_end
from clawdforge.drivers.folders.homes import HomeFolders
from tests.unit.contained import SESSION
from tests.unit.homes_bench import AGENT, OTHER, homes_on, kept

BOUND = 120.0


@pytest.fixture
async def homes(tmp_path: Path) -> AsyncIterator[HomeFolders]:
    async with asyncio.timeout(BOUND), homes_on(tmp_path) as folders:
        yield folders


@pytest.mark.parametrize("waiting", ["fork", "purge", "restore"])
@pytest.mark.parametrize("size", [10, 2_000_000])
async def test_a_copy_that_ends_while_somebody_waits_for_the_home(
    homes: HomeFolders, waiting: str, size: int
) -> None:
    """A copy that fails, since the home is too large, was certain to leave both waiting for each other."""
    home = await homes.prepare(SESSION, AGENT)
    await kept(homes, 1)
    (home / "memory").write_bytes(b"x" * size)
    copying = asyncio.create_task(homes.copy_home(SESSION, 2, "agent-2", None))
    await asyncio.sleep(0)
    async with asyncio.timeout(BOUND / 2):
        if waiting == "fork":
            await homes.branch(SESSION, OTHER, 1)
        elif waiting == "purge":
            await homes.remove(SESSION)
        else:
            await homes.restore(SESSION, 1)
        await copying
        await homes.close()
    assert home.exists() is (waiting != "purge")


async def test_a_lock_that_was_promised_to_somebody_is_not_free() -> None:
    lock, order = HomeLock(), []

    async def wait() -> None:
        async with lock:
            order.append("the waiter")

    async with lock:
        waiter = asyncio.create_task(wait())
        await asyncio.sleep(0)
    assert not order
    assert not lock.is_free
    await waiter
    assert lock.is_free


async def test_whoever_gives_up_waiting_leaves_the_lock_free() -> None:
    lock = HomeLock()
    async with lock:
        waiter = asyncio.create_task(lock.__aenter__())
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.wait({waiter})
    assert lock.is_free


@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_cancel_however_often_waits_for_the_thread(*, is_shared: bool) -> None:
    """A turn that is broken off is cancelled again and again; its home must not be changed by two at once."""
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(BOUND)
        done.set()

    threads = None if is_shared else ThreadPoolExecutor(1)
    running = asyncio.create_task(run_to_end(work, threads=threads))
    await asyncio.to_thread(begun.wait, BOUND)
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not running.done()
    go_on.set()
    await asyncio.wait({running})
    assert running.cancelled()
    assert done.is_set()
