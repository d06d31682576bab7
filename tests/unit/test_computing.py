"""Computing beside the event loop: one thread at a time, apps in turn, whoever hangs up."""

import asyncio
import threading

import pytest

from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.pacing.pace import Pace

WAIT_SECS = 30


async def test_one_at_a_time_and_apps_in_turn() -> None:
    computing, lock = Computing(), threading.Lock()
    came: list[str] = []

    def work(app: str) -> None:
        assert lock.acquire(blocking=False), "two at once"
        came.append(app)
        lock.release()

    apps = ["noisy"] * 20 + ["quiet"] * 2
    await asyncio.gather(*(computing.run(app, lambda app=app: work(app)) for app in apps))  # type: ignore[misc]
    assert came[:5] == ["noisy", "noisy", "quiet", "noisy", "quiet"]
    assert len(came) == 22


async def test_where_no_thread_can_be_had_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    computing, loop = Computing(), asyncio.get_running_loop()

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(loop, "run_in_executor", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await computing.run("app", int)
    async with asyncio.timeout(WAIT_SECS):
        assert await computing.run("app", int) == 0


async def test_the_work_of_somebody_who_hung_up_is_waited_for() -> None:
    """Or a crowd that sends large bodies and hangs up would have as many threads as it likes."""
    computing = Computing()
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(WAIT_SECS)
        ended.set()

    gone = asyncio.create_task(computing.run("a", work))
    await asyncio.to_thread(begun.wait, WAIT_SECS)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    after = asyncio.create_task(computing.run("b", ended.is_set))
    await asyncio.sleep(0)
    may_end.set()
    assert await asyncio.wait_for(after, WAIT_SECS)


async def test_somebody_who_hangs_up_before_a_thread_is_free_holds_nobody_up() -> None:
    """All threads are taken, so the work has not begun when its caller leaves."""
    computing, may_end = Computing(), threading.Event()
    loop = asyncio.get_running_loop()
    others = [loop.run_in_executor(None, may_end.wait, WAIT_SECS) for _ in range(64)]
    gone = asyncio.create_task(computing.run("a", lambda: None))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    may_end.set()
    assert await asyncio.wait_for(computing.run("b", lambda: 1), WAIT_SECS) == 1
    await asyncio.gather(*others)


async def test_an_error_is_the_callers_and_the_next_one_begins() -> None:
    computing = Computing()

    def fail() -> None:
        raise ValueError("no")

    found = await asyncio.gather(
        computing.run("a", fail), computing.run("a", lambda: 2), return_exceptions=True
    )
    assert isinstance(found[0], ValueError)
    assert found[1] == 2


@pytest.mark.parametrize("others", [0, 1])
async def test_a_turn_that_comes_to_somebody_who_is_cancelled_goes_on(others: int) -> None:
    """At the moment when it is theirs and they have not run yet."""
    computing = Computing()
    computing._is_busy = True
    chosen = asyncio.create_task(computing.run("a", lambda: 0))
    waiting = [asyncio.create_task(computing.run("a", lambda: 1)) for _ in range(others)]
    await asyncio.sleep(0)
    computing._go_on()
    chosen.cancel()
    await asyncio.gather(chosen, return_exceptions=True)
    assert chosen.cancelled()
    assert await asyncio.wait_for(asyncio.gather(*waiting), WAIT_SECS) == [1] * others
    assert await asyncio.wait_for(computing.run("b", lambda: 2), WAIT_SECS) == 2


async def test_apps_are_charged_for_what_they_computed() -> None:
    pace, charged = Pace(), asyncio.Event()
    turns, found = pace.turns, list[tuple[str, float]]()

    def note(app: str, cpu: float) -> None:
        found.append((app, cpu))
        LoopTurns.charge(turns, app, cpu)
        charged.set()

    pace.computing.charge_to(note)
    assert await pace.of("noisy").compute(lambda: sum(range(10_000))) == 49_995_000
    await asyncio.wait_for(charged.wait(), WAIT_SECS)
    ((app, cpu),) = found
    assert app == "noisy"
    assert cpu > 0


def test_what_apps_compute_is_on_the_account_of_the_loop() -> None:
    pace = Pace()
    assert pace.computing._charge == pace.turns.charge
