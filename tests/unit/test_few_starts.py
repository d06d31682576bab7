"""What starts and ends of agents take of everybody: two start at a time, and no disk on the loop."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.pacing.few_starts import MOST, FewStarts
from clawdforge.core.pacing.pace import Pace
from clawdforge.drivers.acp import driver as acp_driver
from clawdforge.drivers.acp import preparing
from clawdforge.drivers.processes import cgroups
from clawdforge.drivers.processes.cgroups import Group
from clawdforge.drivers.processes.containment import probe
from tests.unit.acp_bench import Bench


class Starts:
    """Starts that end when they are told."""

    def __init__(self, *, others: bool) -> None:
        self.starts, self.begun, self.others = FewStarts(), list[str](), others
        self.ends: dict[str, asyncio.Event] = {}

    async def run(self, name: str, app: str = "crowd") -> None:
        self.ends[name] = asyncio.Event()
        async with self.starts.place(app, lambda _app: self.others):
            self.begun.append(name)
            await self.ends[name].wait()


async def passes() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_two_of_an_app_start_at_a_time_and_another_app_waits_for_none() -> None:
    starts = Starts(others=True)
    names = [f"{number}" for number in range(MOST + 3)]
    tasks = [asyncio.create_task(starts.run(name)) for name in names]
    tasks.append(asyncio.create_task(starts.run("lone", "other")))
    await passes()
    assert starts.begun == ["0", "1", "lone"]
    tasks[2].cancel()  # it gives its place in the line up, and nobody else's
    starts.ends["1"].set()
    await passes()
    assert starts.begun == ["0", "1", "lone", "3"]
    starts.ends["0"].set()
    tasks[4].cancel()  # in the moment in which it is let in
    await passes()
    for event in starts.ends.values():
        event.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    again = [asyncio.create_task(starts.run(name)) for name in ("a", "b", "c")]
    await passes()
    assert starts.begun[-2:] == ["a", "b"], "as many as before may begin"
    for task in again:
        task.cancel()
    await asyncio.gather(*again, return_exceptions=True)


async def test_alone_an_app_starts_as_many_as_it_likes() -> None:
    starts = Starts(others=False)
    tasks = [asyncio.create_task(starts.run(str(number))) for number in range(MOST + 3)]
    await passes()
    assert len(starts.begun) == MOST + 3
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_whoever_starts_is_alone_until_another_app_comes() -> None:
    pace = Pace()
    await pace.of("crowd").enter()
    assert not pace.turns.are_others_about("crowd")
    await pace.of("lone").enter()
    assert pace.turns.are_others_about("crowd")


async def test_a_group_ends_in_a_thread_and_what_it_says_of_memory_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To remove groups takes locks of the kernel: the loop stood still while another agent started."""
    (tmp_path / "memory.events").write_text("oom 1\noom_kill 1\n")
    tries: list[int] = []

    def remove(folder: Path) -> bool:
        tries.append(threading.get_ident())
        (folder / "memory.events").unlink(missing_ok=True)
        return len(tries) > 1  # at first somebody is left in it

    monkeypatch.setattr(cgroups, "remove_group", remove)
    group = Group((tmp_path,), 1 << 20)
    await group.end()
    assert len(tries) == 2
    assert threading.get_ident() not in tries
    assert "probably killed for using too much memory; its limit is 1 MiB" in group.describe_memory_kill()


async def test_what_a_start_looks_up_on_the_disk_is_looked_up_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def noting(work: Any) -> Any:
        def run(*words: Any) -> Any:
            threads.append(threading.get_ident())
            return work(*words)

        return run

    for module, name in ((acp_driver, "prepare"), (preparing, "choose_user"), (preparing, "open_files")):
        monkeypatch.setattr(module, name, noting(getattr(module, name)))
    async with Bench(tmp_path, probe("auto")).scripted():
        pass
    assert len(threads) == 3
    assert len(set(threads)) == 1, "in one go"
    assert threading.get_ident() not in threads
