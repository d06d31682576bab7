"""Between two turns: copies are made in their app's turn on the event loop."""

import asyncio
import time
from typing import cast

import pytest

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Homes, LiveAgent, Snapshots
from clawdforge.core.running.answers import Answers
from clawdforge.core.running.boundary import Boundary

WAIT_SECS = 30.0
LONG_CPU = 1.0
"""An app that has computed for so long rests for as long as any does."""


class Noted:
    """Stands for snapshots: of which apps something was recorded, in this order."""

    def __init__(self) -> None:
        self.apps: list[str] = []

    async def record_turn(self, session: SessionRow, *_: object) -> None:
        self.apps.append(session.app_name)


def session_of(app: str, number: int) -> SessionRow:
    name = f"{app}-{number}"
    return SessionRow(app_name=app, session_id=name, agent="a", cwd="/", created_at=1, updated_at=1)


@pytest.fixture
def noted() -> Noted:
    return Noted()


def boundary_with(noted: Noted, turns: LoopTurns) -> Boundary:
    return Boundary(Answers(), cast("Homes", None), cast("Snapshots", noted), turns)


async def test_the_copies_of_a_crowd_of_turns_let_another_app_come_in_between(noted: Noted) -> None:
    """Turns whose ends came together began all their copies in one pass of the loop."""
    boundary = boundary_with(noted, LoopTurns())
    ended = [session_of("noisy", number) for number in range(50)] + [session_of("quiet", 1)]
    async with asyncio.timeout(WAIT_SECS):
        await asyncio.gather(*(boundary.keep(session, 1, None) for session in ended))
    assert len(noted.apps) == 51
    assert noted.apps.index("quiet") < 10


async def test_an_app_that_has_had_its_share_copies_nothing_until_it_has_rested(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd of turns was charged with its requests only, and turns from a queue with nothing."""
    turns = LoopTurns()
    boundary, loop = boundary_with(noted, turns), asyncio.get_running_loop()
    stopped, now = True, loop.time()
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: now if stopped else real())
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    await turns.enter("quiet")
    turns.charge("noisy", LONG_CPU)
    copying = asyncio.create_task(boundary.keep(session_of("noisy", 1), 1, None))
    await boundary.keep(session_of("quiet", 1), 1, None)
    for _ in range(20):
        await asyncio.sleep(0)
    assert noted.apps == ["quiet"]
    stopped = False
    async with asyncio.timeout(WAIT_SECS):
        await copying
    assert noted.apps == ["quiet", "noisy"]


class Lasting:
    """Stands for homes, snapshots and the agent: the record of the workspace lasts longer than a cancel, as
    work in a thread does."""

    agent_session_id = "agent"

    def __init__(self) -> None:
        self.thread_ends = asyncio.Event()

    def has_files(self, _: object) -> bool:
        return True

    async def copy_home(self, *_: object) -> None:
        await asyncio.Event().wait()

    async def record_turn(self, *_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await self.thread_ends.wait()


async def pass_often() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_cancel_leaves_no_copy_running() -> None:
    """The worker is gone then, and whoever has waited for it works in the same folders."""
    lasting = Lasting()
    boundary = Boundary(Answers(), cast("Homes", lasting), cast("Snapshots", lasting), LoopTurns())
    keeping = asyncio.create_task(boundary.keep(session_of("a", 1), 1, cast("LiveAgent", lasting)))
    await pass_often()
    keeping.cancel()
    await pass_often()
    assert not keeping.done(), "its thread still runs"
    lasting.thread_ends.set()
    async with asyncio.timeout(WAIT_SECS):
        await asyncio.wait({keeping})
    assert keeping.cancelled()
