"""Clocks that jump: nothing ages by what somebody sets, and a clock that stays right is believed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SECOND
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.trusted_time import SETTLED, TrustedTime
from clawdforge.parts import Parts, open_parts
from clawdforge.settings import Settings
from clawdforge.wire.errors import SessionNotFound
from clawdforge.wire.session import CreateSession

HOUR = 3600 * SECOND
START = 1_800_000_000 * SECOND


class Clocks:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.wall, self.passed = START, 0

    def now(self) -> int:
        return self.wall

    def steady(self) -> int:
        return self.passed

    def pass_by(self, time: int) -> None:
        self.wall += time
        self.passed += time


def test_a_clock_that_goes_right_is_followed() -> None:
    clocks = Clocks()
    trusted = TrustedTime(clocks)
    for _ in range(100):
        clocks.pass_by(HOUR)
        clocks.wall += SECOND // 2  # a little fast
        assert abs(trusted.now() - clocks.wall) <= SECOND


def test_a_jump_ahead_is_not_believed_until_it_has_stayed() -> None:
    clocks = Clocks()
    trusted = TrustedTime(clocks)
    clocks.wall += 30 * HOUR
    assert trusted.now() == START
    clocks.pass_by(SETTLED - SECOND)
    assert trusted.now() == START + SETTLED - SECOND
    clocks.pass_by(SECOND)
    assert trusted.now() == clocks.wall


def test_a_jump_ahead_that_is_taken_back_leaves_nothing() -> None:
    clocks = Clocks()
    trusted = TrustedTime(clocks)
    for _ in range(5):
        clocks.wall += 30 * HOUR
        assert trusted.now() <= START + clocks.passed
        clocks.wall -= 30 * HOUR
        clocks.pass_by(HOUR)
        assert trusted.now() == clocks.wall


def test_a_jump_back_is_followed_at_once() -> None:
    """What is written from then on has earlier times, and must not look old."""
    clocks = Clocks()
    trusted = TrustedTime(clocks)
    clocks.wall -= 30 * HOUR
    assert trusted.now() == clocks.wall


@pytest.fixture
async def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Parts, Clocks]]:
    clocks = Clocks()
    monkeypatch.setattr("clawdforge.parts.SystemClock", lambda: clocks)
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "sandbox": "off"})
    async with asyncio.timeout(60), open_parts(settings) as opened:
        yield opened, clocks
        await opened.supervisor.stop(0)


async def test_no_session_is_closed_or_deleted_by_a_clock_that_was_wrong_for_a_sweep(
    parts: tuple[Parts, Clocks],
) -> None:
    services, clocks = parts[0].services, parts[1]
    idle, closed = [
        (await services.sessions.create(LOCAL_APP, CreateSession())).row.session_id for _ in range(2)
    ]
    await services.sessions.close(LOCAL_APP, closed)
    for jump in (30 * HOUR, 24 * 365 * HOUR):
        clocks.wall += jump
        swept = await services.sweeper.sweep()
        assert (swept.soft_closed, swept.hard_deleted) == (0, 0)
        clocks.wall -= jump
    assert (await services.sessions.get(LOCAL_APP, closed)).row.deleted_at is None
    clocks.pass_by(30 * HOUR)
    swept = await services.sweeper.sweep()
    assert (swept.soft_closed, swept.hard_deleted) == (1, 1)
    assert (await services.sessions.get(LOCAL_APP, idle)).row.closed_at is not None
    with pytest.raises(SessionNotFound):
        await services.sessions.get(LOCAL_APP, closed)
