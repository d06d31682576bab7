"""The watchdog sees a loop that stands still, and says in which task and where."""

import asyncio
import logging
import threading

import pytest

from clawdforge.core.pacing.watchdog import Stall, Watchdog, describe_running


async def test_a_loop_that_stands_still_is_measured_and_the_task_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop stands until the watchdog has said so: nothing here depends on how fast the machine is."""
    dog, noticed, seen = Watchdog(every=0.001, patience=0.001), threading.Event(), list[Stall]()
    named = threading.Event()

    def describe(loop: asyncio.AbstractEventLoop, thread: int) -> str:
        what = describe_running(loop, thread)
        if "a slow one" in what:
            named.set()
        return what

    def report(stall: Stall) -> None:
        seen.append(stall)
        Watchdog.report(dog, stall)
        noticed.set()

    monkeypatch.setattr("clawdforge.core.pacing.watchdog.describe_running", describe)
    monkeypatch.setattr(dog, "report", report)

    async def stand_still() -> None:
        """Again and again: a busy machine may have stood still before, which is looked at only once."""
        async with asyncio.timeout(60):
            while not named.wait(0.05):  # noqa: ASYNC110 - it is to stand still
                await asyncio.sleep(0.005)

    with caplog.at_level(logging.WARNING), dog.watching():
        await asyncio.create_task(stand_still(), name="a slow one")
        assert await asyncio.to_thread(noticed.wait, 60)
    assert any("a slow one" in stall.what for stall in seen)
    assert "the event loop stood still" in caplog.text
    assert dog.delays.samples()[-1].value >= 1


async def test_it_looks_into_our_own_code() -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    task.set_name("mine")
    told = describe_running(loop, threading.get_ident())
    assert told.startswith("mine (clawdforge.core.pacing.watchdog.describe")
