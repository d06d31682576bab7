"""Turns on the event loop: apps one after another, few in a pass, slices of long work one at a time."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable

import pytest

from clawdforge.core.pacing.loop_turns import (
    BURST_SECS,
    MANY,
    MOST_PASSES,
    MOST_REST_SECS,
    NOBODY,
    SHARE,
    SHARE_OF_NOBODY,
    SHORT_REST_SECS,
    LoopTurns,
)

Wait = Callable[[str], Awaitable[None]]
MOMENT_SECS = 1e-9
"""No timer takes less: so little could not be added to a clock."""


@pytest.fixture(autouse=True)
async def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands: on a busy machine, any pass may be a long one."""
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 0.0)


async def order_of(wait: Wait, apps: list[str]) -> list[str]:
    """Who came when, of tasks that were made in this order."""
    came: list[str] = []

    async def come(app: str) -> None:
        await wait(app)
        came.append(app)

    await asyncio.gather(*(come(app) for app in apps))
    return came


async def test_one_of_a_quiet_app_comes_in_the_pass_after_a_crowd_has_begun() -> None:
    """It came after all of them."""
    came = await order_of(LoopTurns().enter, ["noisy"] * 300 + ["quiet"] * 2)
    assert came[:MANY] == ["noisy"] * MANY
    assert MANY < came.index("quiet") <= 2 * MANY
    assert came[: 2 * MANY + 2].count("quiet") == 2
    assert len(came) == 302


class Clock:
    """Stands but for what is added, and for what the loop would sleep: a pass in which nothing is ready.

    What is added is computed, unless it is `wait`ed for.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self._waited = 0.0
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self.now)
        monkeypatch.setattr(time, "thread_time", lambda: self.now - self._waited)
        monkeypatch.setattr(loop, "call_later", lambda secs, call: loop.call_soon(self._skip, secs, call))

    def wait(self, secs: float) -> None:
        """The loop's thread has something to do, and gets no processor."""
        self.now += secs
        self._waited += secs

    def _skip(self, secs: float, call: Callable[[], None]) -> None:
        self.wait(max(secs, MOMENT_SECS))
        call()


async def test_an_app_whose_request_took_long_has_a_third_of_the_time_where_others_are_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It came in the next pass, and met the other app's turns at every step."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    begun: list[float] = []

    async def heavy() -> None:
        await turns.enter("noisy")
        begun.append(clock.now)
        clock.now += 0.02

    await turns.enter("quiet")
    await asyncio.gather(*(heavy() for _ in range(5)))
    gaps = [later - earlier for earlier, later in itertools.pairwise(begun)]
    assert len(gaps) == 4
    assert min(gaps[1:]) > 0.0599


@pytest.mark.parametrize(("who", "share"), [("noisy", SHARE), (NOBODY, SHARE_OF_NOBODY)])
async def test_strangers_have_half_of_the_share_of_an_app(
    monkeypatch: pytest.MonkeyPatch, who: str, share: float
) -> None:
    """Nobody knows whether anybody waits for what they ask."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    begun: list[float] = []

    async def ask() -> None:
        await turns.enter(who)
        begun.append(clock.now)
        clock.now += 0.008

    await turns.enter("quiet")
    await asyncio.gather(*(ask() for _ in range(20)))
    gaps = [later - earlier for earlier, later in itertools.pairwise(begun)]
    assert sum(gaps[6:]) / len(gaps[6:]) == pytest.approx(0.008 / share, rel=0.1)


async def test_strangers_slow_no_app_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody asks every second whether the server lives."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()

    async def work() -> None:
        await turns.enter("busy")
        clock.now += 0.02

    await turns.enter(NOBODY)
    await asyncio.gather(*(work() for _ in range(5)))
    assert clock.now == pytest.approx(5 * 0.02)


async def test_an_app_that_has_less_than_its_share_never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """It rested after each pass, as the noisy one does, and its turns took twice as long for that alone."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    for _ in range(200):
        await turns.enter("noisy")
        clock.now += 0.005
        await asyncio.sleep(0)
        await turns.enter("quiet")
        clock.now += 0.003
        for _ in range(3):
            await asyncio.sleep(0)
        assert "quiet" not in turns._rests.who(clock.now)


async def test_a_long_pass_is_rested_from_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of minutes, such as that of a machine that slept, starves nobody."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    await turns.enter("quiet")
    await turns.enter("noisy")
    clock.now += 0.9
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    begun = clock.now
    await turns.enter("noisy")
    assert clock.now - begun < MOST_REST_SECS + 0.001


async def test_whoever_rests_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    await turns.enter("quiet")
    await turns.enter("noisy")
    clock.now += 0.04
    waiting = asyncio.create_task(turns.enter("noisy"))
    await asyncio.sleep(0)
    begun = clock.now
    await turns.enter("quiet")
    assert clock.now == begun
    assert not waiting.done()
    await waiting


async def test_the_time_of_a_rest_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever came in the middle of another app's rest was charged with all of it, and rested as long."""
    clock = Clock(monkeypatch)
    loop = asyncio.get_running_loop()
    waits: list[asyncio.Handle] = []

    def wait_for_ever(_secs: float, call: Callable[[], None]) -> asyncio.Handle:
        waits.append(asyncio.Handle(call, (), loop))
        return waits[-1]

    monkeypatch.setattr(loop, "call_later", wait_for_ever)
    turns = LoopTurns()
    await turns.enter("quiet")
    await turns.enter("noisy")
    clock.now += 0.04
    waiting = asyncio.create_task(turns.enter("noisy"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert waits
    clock.now += 0.03
    for _ in range(5):
        entering = asyncio.create_task(turns.enter("quiet"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert entering.done(), "the quiet app rests for the noisy one"
    waiting.cancel()


async def test_short_passes_are_rested_from_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer takes a millisecond at least, which is long for a pass of a tenth."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    rests: list[float] = []
    later = asyncio.get_running_loop().call_later

    def note(secs: float, call: Callable[[], None]) -> asyncio.Handle:
        rests.append(secs)
        return later(secs, call)

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", note)

    async def light() -> None:
        await turns.enter("noisy")
        clock.now += 0.0001

    await turns.enter("quiet")
    await asyncio.gather(*(light() for _ in range(500)))
    due = 500 * 0.0001 * (1 - SHARE) / SHARE - BURST_SECS / SHARE
    assert 5 <= len(rests) <= due / SHORT_REST_SECS
    assert min(rests) > 0.002
    assert sum(rests) == pytest.approx(due, rel=0.2)


async def test_alone_an_app_whose_request_took_long_lets_only_passes_go_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It begins one at a time until a short one, and loses no time."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()

    async def heavy() -> None:
        await turns.enter("noisy")
        clock.now += 0.02

    await asyncio.gather(*(heavy() for _ in range(20)))
    assert clock.now == pytest.approx(20 * 0.02)
    for _ in range(2 * MOST_PASSES):
        await asyncio.sleep(0)
    assert not turns._rests.is_counting()
    assert turns._slow == {"noisy"}
    await turns.enter("noisy")
    for _ in range(5):
        await asyncio.sleep(0)
    assert turns._slow == set()


async def test_no_more_than_a_few_begin_in_one_pass() -> None:
    turns = LoopTurns()
    begun, most = 0, 0

    async def come() -> None:
        nonlocal begun
        await turns.enter("noisy")
        begun += 1

    tasks = [asyncio.create_task(come()) for _ in range(100)]
    while not all(task.done() for task in tasks):
        before = begun
        await asyncio.sleep(0)
        most = max(most, begun - before)
    assert 1 <= most <= MANY


async def test_whoever_is_alone_does_not_wait() -> None:
    turns = LoopTurns()
    waiting = turns.enter("quiet")
    with pytest.raises(StopIteration):
        waiting.send(None)  # it would give something to wait for


async def test_slices_of_two_apps_alternate_however_many_one_has() -> None:
    came = await order_of(LoopTurns().slice, ["noisy"] * 20 + ["quiet"] * 3)
    assert came[:6] == ["noisy", "quiet"] * 3


async def test_between_two_slices_others_have_passes_for_what_the_slice_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exactly so many, by a clock that only the slices move."""
    loop = asyncio.get_running_loop()
    now = 0.0
    monkeypatch.setattr(loop, "time", lambda: now)
    monkeypatch.setattr(time, "thread_time", lambda: now)
    turns, passes = LoopTurns(), 0
    seen: list[int] = []

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async def work(milliseconds: int) -> None:
        nonlocal now
        for _ in range(5):
            await turns.slice("noisy")
            seen.append(passes)
            now += milliseconds / 1000

    counting = asyncio.create_task(count())
    gaps = {}
    for milliseconds in (0, 4, 1000):
        seen.clear()
        await work(milliseconds)
        gaps[milliseconds] = {later - earlier for earlier, later in itertools.pairwise(seen)}
    counting.cancel()
    assert max(gaps[0]) <= 3
    assert min(gaps[4]) >= 4
    assert MOST_PASSES <= min(gaps[1000]) <= max(gaps[1000]) <= MOST_PASSES + 3


async def test_whoever_leaves_the_line_does_not_hold_it_up() -> None:
    turns = LoopTurns()
    tasks = [asyncio.create_task(turns.slice("a")) for _ in range(10)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
    assert [isinstance(one, asyncio.CancelledError) for one in done] == [True, False] * 5


async def test_at_rest_it_does_nothing() -> None:
    turns = LoopTurns()
    await turns.enter("a")
    await turns.slice("a")
    for _ in range(MOST_PASSES + 5):
        await asyncio.sleep(0)
    assert turns._handle is None


async def test_what_an_app_computes_in_a_thread_is_part_of_its_share_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It had a third of the loop besides: all of one interpreter lock together."""
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    await turns.enter("quiet")
    turns.charge("noisy", 0.02)
    begun = clock.now
    rest = turns._rests.next_end(begun)
    await turns.enter("noisy")
    assert clock.now - begun == pytest.approx(rest)
    assert rest == pytest.approx((0.02 * (1 - SHARE) - BURST_SECS) / SHARE)


async def test_slices_are_part_of_the_share_of_their_app(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    await turns.enter("quiet")
    await asyncio.sleep(0)
    await turns.slice("noisy")
    clock.now += 0.03
    await asyncio.sleep(0)
    assert "noisy" in turns._rests.who(clock.now)
    assert "quiet" not in turns._rests.who(clock.now)


async def test_an_app_that_is_alone_is_not_slowed_by_what_it_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    turns = LoopTurns()
    await turns.enter("busy")
    for _ in range(20):
        turns.charge("busy", 0.1)
    begun = clock.now
    await turns.enter("busy")
    assert clock.now == begun


async def test_a_further_step_waits_only_where_its_app_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a pass of its own for each step, a quiet app's turn would meet the noisy one at each."""
    clock = Clock(monkeypatch)
    turns, passed = LoopTurns(), list[str]()
    await turns.enter("quiet")
    await turns.enter("noisy")
    turns.charge("noisy", 1.0)
    asyncio.get_running_loop().call_soon(passed.append, "a pass")
    await turns.go_on("quiet")
    assert passed == []
    begun = clock.now
    await turns.go_on("noisy")
    assert passed == ["a pass"]
    assert clock.now - begun == pytest.approx(MOST_REST_SECS)
