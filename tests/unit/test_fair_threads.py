"""The threads that copy homes: apps in turn, and some for apps that have none."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge.drivers.folders.home_copies import Copies
from clawdforge.drivers.folders.homes import THREADS, HomeFolders
from tests.unit.homes_bench import AGENT, homes_on


@pytest.fixture
async def homes(tmp_path: Path) -> AsyncIterator[HomeFolders]:
    async with homes_on(tmp_path) as folders:
        yield folders


async def test_copies_of_one_app_do_not_keep_those_of_another_waiting(
    homes: HomeFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to come had all threads, and the quiet app's next turn waited for its copy."""
    go_on, take = threading.Event(), Copies.take

    def take_slowly(copies: Copies, home: Path, *more: Any) -> Any:
        if home.name.startswith("noisy"):
            go_on.wait(60)
        return take(copies, home, *more)

    monkeypatch.setattr(Copies, "take", take_slowly)
    sessions = [f"noisy-{number}" for number in range(2 * THREADS)]
    for session in (*sessions, "quiet"):
        await homes.prepare(session, AGENT)
    crowd = [asyncio.create_task(homes.copy_home(one, 1, "agent", None, "noisy")) for one in sessions]
    try:
        async with asyncio.timeout(30):
            await homes.copy_home("quiet", 1, "agent", None, "quiet")
    finally:
        go_on.set()
        await asyncio.gather(*crowd)
