"""A task that is made only when there is something to do: what it does, and how it ends."""

import asyncio

import pytest

from clawdforge.core.running.when_needed import WhenNeeded


class Work:
    """Pieces of work, which wait for `go`."""

    def __init__(self) -> None:
        self.is_there, self.done, self.ends = True, 0, 0
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        self.error: Exception | None = None
        self.task = WhenNeeded(self._do, lambda: self.is_there, self._note_end, "work")

    async def _do(self) -> None:
        self.begun.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error
        self.done += 1

    def _note_end(self) -> None:
        self.ends += 1


async def turn_over() -> None:
    """Longer than any chain of wake-ups here."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_there_is_no_task_where_nothing_is_left_to_do_a_moment_later() -> None:
    work = Work()
    work.task.note()
    work.is_there = False
    before = len(asyncio.all_tasks())
    await turn_over()
    assert len(asyncio.all_tasks()) == before
    await work.task.end()
    assert (work.done, work.ends) == (0, 0)


async def test_the_end_waits_for_what_is_being_done_and_for_nothing_more() -> None:
    work = Work()
    work.task.note()
    await work.begun.wait()
    work.task.note()
    ending = asyncio.create_task(work.task.end())
    await turn_over()
    assert not ending.done()
    work.go.set()
    await ending
    assert (work.done, work.ends) == (1, 1)


async def test_each_note_is_heeded_and_the_end_of_an_idle_one_waits_for_nothing() -> None:
    work = Work()
    work.go.set()
    for count in (1, 2):
        work.task.note()
        await turn_over()
        assert work.done == count
    ending = work.task.end()
    with pytest.raises(StopIteration):  # at its first step
        ending.send(None)
    await turn_over()
    assert work.ends == 1


async def test_a_failure_is_told_and_nothing_is_done_after_it() -> None:
    work = Work()
    work.error = ValueError("the disk")
    work.go.set()
    work.task.note()
    await turn_over()
    assert work.task.failure is work.error
    assert work.ends == 1
    work.error = None
    work.task.note()
    await turn_over()
    await work.task.end()
    assert work.done == 0
