"""The pool of live agents, with one that does not end when it is told to."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest

from clawdforge.core.models.agents import Answer
from clawdforge.core.ports import Sink
from clawdforge.core.running import pool as pools
from tests.unit.rpc_peer import until


class Stubborn:
    """An agent that does not end before it is `let_go`; the first attempts to end it fail as planned."""

    agent_session_id = "a"
    how: Literal["new", "loaded", "resumed"] = "new"
    remembered: list[str] | None = None
    answered: str | None = None
    mcp_servers: tuple[str, ...] = ()
    note: str | None = None
    alive = True

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.let_go = asyncio.Event()

    async def prompt(
        self, text: str, sink: Sink, *, preface: str = "", traceparent: str | None = None
    ) -> Answer:
        raise NotImplementedError

    async def cancel(self) -> None:
        raise NotImplementedError

    @contextmanager
    def pause(self) -> Iterator[None]:
        yield

    async def close(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        await self.let_go.wait()
        self.alive = False


def taken(pool: pools.AgentPool, session_id: str, agent: Stubborn | None = None) -> pools.Seat:
    seat = pool.try_take("app", session_id)
    assert seat is not None
    seat.agent = agent or Stubborn()
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


async def test_an_app_gives_back_its_last_idle_agents_for_a_place_that_is_kept_for_who_has_none() -> None:
    pool = pools.AgentPool(10, idle_secs=60)  # two of them are kept
    idle = taken(pool, "idle")
    pool.give_back(idle, now=1.0)
    for number in range(7):
        assert pool.try_take("other", f"other {number}") is not None
    assert pool.try_take("newcomer", "newcomer") is not None
    waiting = asyncio.create_task(pool.take("app", "next"))
    await asyncio.sleep(0)
    assert isinstance(idle.agent, Stubborn)
    idle.agent.let_go.set()
    async with asyncio.timeout(30):
        assert (await waiting).session_id == "next"


async def test_turns_that_fail_do_not_keep_an_agent_awake() -> None:
    pool = pools.AgentPool(2, idle_secs=60)
    pool.give_back(taken(pool, "one"), now=1.0)
    pool.give_back(taken(pool, "new"), now=50.0, failed=True)
    seat = pool.try_take("app", "one")
    assert seat is not None
    pool.give_back(seat, now=50.0, failed=True)
    pool.sleep_idle(now=61.0)
    assert pool.live == 1, "the new one has been idle for eleven seconds only"
    pool.sleep_idle(now=110.0)
    assert pool.live == 0


async def test_an_app_that_has_all_it_may_puts_idle_agents_to_sleep_only_where_that_helps() -> None:
    pool = pools.AgentPool(5, idle_secs=60)
    mine = [taken(pool, f"mine{number}") for number in range(4)]
    other = pool.try_take("other", "other")
    assert other is not None
    other.agent = Stubborn()
    pool.give_back(other, now=1.0)
    waiting = asyncio.create_task(pool.take("app", "fifth"))
    await asyncio.sleep(0)
    pool.sleep_idle(now=10.0)
    assert pool.live == 5, "without the other's agent there would still be no room"
    waiting.cancel()
    await asyncio.wait({waiting})
    pool.give_back(mine[0], now=2.0)
    waiting = asyncio.create_task(pool.take("app", "fifth"))
    await asyncio.sleep(0)
    assert pool.live == 3
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


async def test_an_agent_that_does_not_end_keeps_its_home_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session waits for its end, while others have its place."""
    monkeypatch.setattr(pools, "CLOSE_SECS", 0.05)
    pool, agent = pools.AgentPool(1, idle_secs=60), Stubborn()
    pool.give_back(taken(pool, "one", agent), now=0.0)
    pool.retire_agent("one")
    again = asyncio.create_task(pool.take("app", "one"))
    async with asyncio.timeout(60):
        pool.give_back(await pool.take("app", "two"), now=1.0)
        assert not await pool.end_agent("one")
        assert not again.done(), "two agents in one home"
        agent.let_go.set()
        await again
    assert not agent.alive


@pytest.mark.parametrize("everybody", [True, False])
@pytest.mark.parametrize("busy", [True, False])
async def test_an_agent_that_is_let_go_ends_once_no_turn_runs(busy: bool, everybody: bool) -> None:
    pool, agent = pools.AgentPool(1, idle_secs=60), Stubborn()
    agent.let_go.set()
    seat = taken(pool, "one", agent)
    if not busy:
        pool.give_back(seat, now=0.0)
    if everybody:
        pool.retire_all()
    else:
        pool.retire_agent("one")
        pool.retire_agent("nobody")
    if busy:
        assert (agent.alive, pool.live) == (True, 1)
        pool.give_back(seat, now=1.0)
    async with asyncio.timeout(60):
        again = await pool.take("app", "one")
    assert (agent.alive, again.leaves) == (False, False)


@pytest.mark.parametrize("busy", [True, False])
async def test_who_ends_an_agent_is_told_whether_it_has_ended(
    monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    monkeypatch.setattr(pools, "CLOSE_SECS", 0.05)
    pool, agent = pools.AgentPool(1, idle_secs=60), Stubborn()
    seat = taken(pool, "one", agent)
    if not busy:
        pool.give_back(seat, now=0.0)
    async with asyncio.timeout(60):
        assert not await pool.end_agent("one")
        agent.let_go.set()
        monkeypatch.setattr(pools, "CLOSE_SECS", 60.0)
        assert await pool.end_agent("one")
    assert not agent.alive


@pytest.mark.parametrize("failure", [OSError(5, "nobody knows"), RuntimeError("a fault of ours")])
async def test_an_end_that_failed_frees_nothing_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    monkeypatch.setattr(pools, "TRY_AGAIN_SECS", (0.01, 0.01))
    pool, agent = pools.AgentPool(2, idle_secs=60), Stubborn(failure, failure, failure)
    pool.give_back(taken(pool, "one", agent), now=0.0)
    pool.retire_agent("one")
    agent.let_go.set()
    async with asyncio.timeout(60):
        await pool.take("app", "one")
    assert (agent.failures, agent.alive) == ([], False)
    assert "the end of an agent failed" in caplog.text


@pytest.mark.parametrize("late", [True, False])
async def test_a_turn_that_outlasts_the_pool_gives_its_place_back_once(late: bool) -> None:
    """And an agent that came up after all is ended."""
    pool, agent = pools.AgentPool(2, idle_secs=60), Stubborn()
    agent.let_go.set()
    seat = taken(pool, "one", agent)
    async with asyncio.timeout(60):
        await pool.close()
        assert (agent.alive, pool.taken) == (False, 0)
        seat.agent = came = Stubborn() if late else None
        pool.give_back(seat, now=1.0)
        if came is not None:
            came.let_go.set()
        await pool.close()
    assert pool.taken == 0
    assert came is None or not came.alive


async def test_an_app_at_its_limit_puts_its_own_idle_agent_to_sleep() -> None:
    pool = pools.AgentPool(10, idle_secs=60)
    pool.limit("app", 1)
    ready = Stubborn()
    ready.let_go.set()
    pool.give_back(taken(pool, "one", ready), now=1.0)
    seat = await asyncio.wait_for(pool.take("app", "two"), 10)
    assert (seat.session_id, seat.is_counted, pool.taken) == ("two", True, 1)
    assert not ready.alive
    await pool.close()


async def test_a_sub_session_does_not_wait_for_the_place_of_its_parent() -> None:
    """The parent's turn may wait for it: both would wait for ever."""
    pool = pools.AgentPool(10, idle_secs=60)
    pool.limit("app", 1)
    parent = await pool.take("app", "parent")
    child = await asyncio.wait_for(pool.take("app", "child", "parent"), 10)
    below = await asyncio.wait_for(pool.take("app", "below", "child"), 10)
    assert [parent.is_counted, child.is_counted, below.is_counted] == [True, False, False]
    stranger = asyncio.create_task(pool.take("app", "stranger", "nobody"))
    await asyncio.sleep(0)
    for seat in (below, child):
        pool.give_back(seat, now=1.0)
    await until(lambda: pool.taken == 1)
    assert not stranger.done()
    pool.give_back(parent, now=2.0)
    assert (await asyncio.wait_for(stranger, 10)).is_counted
    await pool.close()


async def test_an_agent_stays_where_only_an_app_with_more_of_them_waits() -> None:
    """Else every turn of a quiet app would start its agent anew beside one that wants all places."""
    pool = pools.AgentPool(5, idle_secs=60)  # one of them is kept
    quiet = taken(pool, "quiet")
    for number in range(3):
        assert pool.try_take("noisy", f"noisy {number}") is not None
    waiting = asyncio.create_task(pool.take("noisy", "one more"))
    await asyncio.sleep(0)
    assert pool.waiting == 1
    pool.give_back(quiet, now=1.0)
    assert pool.has(quiet)
    later = asyncio.create_task(pool.take("noisy", "another"))
    await asyncio.sleep(0)
    assert (pool.has(quiet), pool.waiting) == (True, 2), "nor does it leave for the next one"
    pool.sleep_idle(now=1.5)
    assert pool.has(quiet), "nor when room is looked for again"
    pool.sleep_idle(now=10.0)
    assert not pool.has(quiet), "but one that is not used does"
    for task in (waiting, later):
        task.cancel()
    await end(pool, quiet)


async def test_an_agent_leaves_for_an_app_that_has_none() -> None:
    pool = pools.AgentPool(2, idle_secs=60)
    mine = [taken(pool, "one"), taken(pool, "two")]
    waiting = asyncio.create_task(pool.take("newcomer", "new"))
    await asyncio.sleep(0)
    pool.give_back(mine[0], now=1.0)
    assert not pool.has(mine[0])
    pool.give_back(mine[1], now=1.0)
    assert pool.has(mine[1]), "one is enough"
    waiting.cancel()
    await end(pool, *mine)


async def test_as_many_agents_leave_as_turns_wait() -> None:
    pool = pools.AgentPool(3, idle_secs=60)
    mine = [taken(pool, session_id) for session_id in ("one", "two", "three")]
    for seat in mine:
        pool.give_back(seat, now=1.0)
    waiting = [asyncio.create_task(pool.take(app, app)) for app in ("newcomer", "another")]
    await asyncio.sleep(0)
    assert [pool.has(seat) for seat in mine] == [False, False, True]
    for task in waiting:
        task.cancel()
    await end(pool, *mine)


async def test_an_app_at_its_limit_gets_its_own_place_back_whoever_else_leaves() -> None:
    pool = pools.AgentPool(3, idle_secs=60)
    pool.limit("app", 1)
    other = pool.try_take("other", "other")
    assert other is not None
    other.agent = Stubborn()
    mine = taken(pool, "mine")
    waiting = asyncio.create_task(pool.take("app", "next"))
    await asyncio.sleep(0)
    other.leaves = True
    pool.give_back(other, now=1.0)
    pool.give_back(mine, now=1.0)
    assert not pool.has(mine)
    waiting.cancel()
    await end(pool, mine, other)


async def test_what_nobody_has_used_for_a_while_leaves_for_everybody() -> None:
    pool = pools.AgentPool(10, idle_secs=600)
    poor = []
    for number in range(6):
        seat = pool.try_take(f"app {number}", f"session {number}")
        assert seat is not None
        seat.agent = Stubborn()
        poor.append(seat)
        pool.give_back(seat, now=1.0)
    assert pool.try_take("rich", "one") is not None
    assert pool.try_take("rich", "two") is not None
    pool.sleep_idle(now=10.0)
    waiting = [asyncio.create_task(pool.take("rich", f"more {number}")) for number in range(3)]
    await asyncio.sleep(0)
    assert sum(not pool.has(seat) for seat in poor) == 3, "as many as wait"
    for task in waiting:
        task.cancel()
    await end(pool, *poor)


async def test_a_turn_of_a_sub_session_spares_nobody() -> None:
    """The turn that waits for it holds a place itself."""
    pool = pools.AgentPool(5, idle_secs=60)  # one of them is kept
    for number in range(3):
        assert pool.try_take("rich", f"parent {number}") is not None
    poor = taken(pool, "poor")
    pool.give_back(poor, now=1.0)
    waiting = asyncio.create_task(pool.take("rich", "child", "parent 0"))
    await asyncio.sleep(0)
    assert not pool.has(poor)
    waiting.cancel()
    await end(pool, poor)


async def test_a_sub_session_gets_a_place_that_somebody_poorer_uses_in_the_end() -> None:
    pool = pools.AgentPool(5, idle_secs=60)  # one of them is kept
    for number in range(3):
        assert pool.try_take("rich", f"parent {number}") is not None
    poor = taken(pool, "poor")
    waiting = asyncio.create_task(pool.take("rich", "child", "parent 0"))
    await asyncio.sleep(0)
    pool.give_back(poor, now=1.0)
    assert pool.has(poor)
    pool.sleep_idle(now=1.5)
    assert not pool.has(poor)
    waiting.cancel()
    await end(pool, poor)


async def test_who_waits_for_its_own_apps_limit_wants_no_place_of_others() -> None:
    pool = pools.AgentPool(5, idle_secs=60)
    pool.limit("limited", 1)
    assert pool.try_take("limited", "one") is not None
    waiting = asyncio.create_task(pool.take("limited", "two"))
    mine = taken(pool, "mine")
    await asyncio.sleep(0)
    pool.give_back(mine, now=1.0)
    assert pool.has(mine)
    waiting.cancel()
    await end(pool, mine)


async def end(pool: pools.AgentPool, *seats: pools.Seat) -> None:
    for seat in seats:
        if isinstance(seat.agent, Stubborn):
            seat.agent.let_go.set()
    await pool.close()
