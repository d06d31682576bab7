"""The threads that copy homes: apps in turn, and some for apps that have none."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.drivers.folders.home_copies import Copies, NoCopy
from clawdforge.drivers.folders.homes import THREADS, HomeFolders
from clawdforge.parts import open_parts
from clawdforge.wire.session import CreateSession
from tests.unit.homes_bench import AGENT, homes_on
from tests.unit.supervised import APP, make_settings, say


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


async def test_an_app_is_charged_for_what_copies_of_its_homes_compute(homes: HomeFolders) -> None:
    """They had the interpreter besides what the app had of the event loop, in eight threads at once."""
    charged: list[tuple[str, float]] = []
    homes.charge_to(lambda app, cpu: charged.append((app, cpu)))
    await homes.prepare("one", AGENT)
    await homes.copy_home("one", 1, "agent", None, "noisy")
    ((app, cpu),) = charged
    assert app == "noisy"
    assert cpu > 0


async def test_nobody_is_charged_where_no_app_is_named(homes: HomeFolders) -> None:
    """Strangers have no name either, and would rest for it."""
    charged: list[str] = []
    homes.charge_to(lambda app, _: charged.append(app))
    await homes.prepare("one", AGENT)
    await homes.copy_home("one", 1, "agent", None)
    assert charged == []


async def test_an_app_is_charged_for_a_copy_that_failed(
    homes: HomeFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise NoCopy("it is too large")

    charged: list[str] = []
    homes.charge_to(lambda app, _: charged.append(app))
    monkeypatch.setattr(Copies, "take", fail)
    await homes.prepare("one", AGENT)
    await homes.copy_home("one", 1, "agent", None, "noisy")
    assert charged == ["noisy"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_what_a_server_computes_for_copies_is_on_the_account_of_their_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[tuple[str, float]] = []
    monkeypatch.setattr(LoopTurns, "charge", lambda _, app, cpu: charged.append((app, cpu)))
    async with asyncio.timeout(60), open_parts(make_settings(tmp_path)) as parts:
        state = await parts.services.sessions.create(APP, CreateSession())
        await say(parts, state.row.session_id, "write a.txt 1")
        await parts.supervisor.stop(60)
        assert len(charged) >= 3, "the workspace before and after the turn, and the home"
        assert {app for app, _ in charged} == {APP}
        assert all(cpu > 0 for _, cpu in charged)
