"""Agents are started beside the event loop, by a thread that stays: nothing waits, and nothing is left."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.needs import needs
from tests.unit.contained import LANDLOCK, Bench, bench_on, until


@pytest.fixture(
    params=["tree", LANDLOCK, *(pytest.param(kind, marks=needs("bwrap")) for kind in ("bwrap", "bwrap-full"))]
)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_on(tmp_path, str(request.param)) as bench:
        yield bench


async def test_an_agent_outlives_what_started_it(bench: Bench) -> None:
    """Whoever is tied to its parent is killed when the thread ends that started it."""
    process = await bench.spawn("cat")
    del bench.spawner
    gc.collect()
    process.stdin.write(b"still here\n")
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"still here\n"
    assert process.returncode is None
    await process.close()


def list_open() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


class SlowStart:
    """Makes every start take a while, and tells when one has begun."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        start = bench.spawner._start

        def slow(*args: Any) -> Any:
            self.begun.set()
            assert self.go_on.wait(60)
            return start(*args)

        monkeypatch.setattr(bench.spawner, "_start", slow)


async def test_the_event_loop_goes_on_while_an_agent_is_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowStart(bench, monkeypatch)
    spawning = asyncio.create_task(bench.spawn("cat"))
    await until(slow.begun.is_set)
    assert not spawning.done()
    slow.go_on.set()
    await (await spawning).close()


@pytest.mark.parametrize("cancels", [1, 3])
async def test_a_start_that_is_cancelled_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, cancels: int
) -> None:
    before = list_open()
    slow = SlowStart(bench, monkeypatch)
    spawning = asyncio.create_task(bench.spawn("sleep", "600"))
    await until(slow.begun.is_set)
    for _ in range(cancels):
        spawning.cancel()
        await asyncio.sleep(0)
    assert not spawning.done()  # what has begun is seen through first
    slow.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await spawning
    assert not bench.tagged()
    assert list_open() <= before


async def test_the_end_of_one_agent_spares_another_that_is_just_started(bench: Bench) -> None:
    """What a killed keeper leaves becomes our child, without a tag, as one is that has not begun yet."""
    for _ in range(10):
        dying = await bench.spawn("sleep", "600")
        starting = [asyncio.create_task(bench.spawn("cat")) for _ in range(3)]
        while not all(task.done() for task in starting):
            await dying._end_leftovers()
        for task in starting:
            await (await task).close()
        await dying.close()
