"""The pool of live agents, with one that does not end when it is told to."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest

from clawdforge.core.model import Answer
from clawdforge.core.ports import Sink
from clawdforge.core.running import pool as pools


class Stubborn:
    """An agent that is never closed."""

    agent_session_id = "a"
    how: Literal["new", "loaded", "resumed"] = "new"
    remembered: list[str] | None = None
    note: str | None = None
    alive = True

    async def prompt(self, text: str, sink: Sink, *, preface: str = "") -> Answer:
        raise NotImplementedError

    async def cancel(self) -> None:
        raise NotImplementedError

    @contextmanager
    def pause(self) -> Iterator[None]:
        yield

    async def close(self) -> None:
        await asyncio.Event().wait()


def taken(pool: pools.AgentPool, session_id: str) -> pools.Seat:
    seat = pool.try_take("app", session_id)
    assert seat is not None
    seat.agent = Stubborn()
    return seat


async def test_who_waits_for_an_agent_that_does_not_end_gets_the_room_of_another() -> None:
    pool = pools.AgentPool(2, idle_secs=60)
    for number, session_id in enumerate(("one", "two")):
        pool.give_back(taken(pool, session_id), now=float(number))
    waiting = asyncio.create_task(pool.take("app", "three"))
    await asyncio.sleep(0)
    assert pool.live == 1, "only one is told to end"
    pool.sleep_idle(now=2.0)
    assert pool.live == 0, "then the other one, which nobody needs"
    waiting.cancel()


async def test_the_seat_of_an_agent_that_does_not_end_is_free_after_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pools, "CLOSE_SECS", 0.05)
    pool = pools.AgentPool(1, idle_secs=60)
    pool.give_back(taken(pool, "one"), now=0.0)
    async with asyncio.timeout(60):
        seat = await pool.take("app", "two")
    assert seat.session_id == "two"
    assert "did not end in time" in caplog.text
    async with asyncio.timeout(60):
        await pool.close()
