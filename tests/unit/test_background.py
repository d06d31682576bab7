"""Tasks beside requests: one that fails is told, counted and started again; the others go on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.running import pool as pools
from clawdforge.core.running.background import Background
from clawdforge.core.running.pool import AgentPool
from clawdforge.core.services.health import HealthService
from clawdforge.core.services.metrics import MetricsService
from clawdforge.parts import open_parts
from clawdforge.settings import Settings
from tests.unit.rpc_peer import until

BOUND = 20.0


class Work:
    """Fails or ends as often as it is told, then goes on until it is cancelled."""

    def __init__(self, *ends: Exception | None) -> None:
        self.ends = list(ends)
        self.begun = 0
        self.steady = asyncio.Event()

    async def __call__(self) -> None:
        self.begun += 1
        await asyncio.sleep(0)
        if self.ends:
            end = self.ends.pop(0)
            if end is not None:
                raise end
            return
        self.steady.set()
        await asyncio.Event().wait()


@pytest.fixture
async def background() -> AsyncIterator[Background]:
    found = Background(first_pause=0.01)
    async with asyncio.timeout(BOUND):
        yield found
        await found.stop()


async def test_a_task_that_fails_or_ends_is_started_again(
    background: Background, caplog: pytest.LogCaptureFixture
) -> None:
    work, other = Work(KeyError("a damaged row"), None, OSError(28, "full")), Work()
    background.keep("the sweeper", work)
    background.keep("another", other)
    await work.steady.wait()
    assert (work.begun, other.begun) == (4, 1)
    assert background.failures == {"the sweeper": 3, "another": 0}
    assert background.reason() is None
    assert "a damaged row" in caplog.text
    assert "Traceback" in caplog.text


async def test_work_that_may_end_is_not_repeated_once_it_has(background: Background) -> None:
    work = Work(ValueError("first"), None, None)
    background.finish("a look", work)
    await asyncio.wait(background._tasks)
    assert work.begun == 2
    assert background.failures == {"a look": 1}


async def test_one_task_may_outlive_the_others(background: Background) -> None:
    """The lease lasts until no agent is left."""
    others, lease = Work(), Work()
    background.keep("others", others)
    background.keep("the lease", lease)
    await asyncio.gather(others.steady.wait(), lease.steady.wait())
    await background.stop(but="the lease")
    assert [task.get_name() for task in background._tasks if not task.done()] == ["the lease"]


async def test_a_server_says_what_is_down(tmp_path: Path) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "sandbox": "off"})
    async with asyncio.timeout(BOUND), open_parts(settings) as parts:
        services, background = parts.services, parts.background
        assert isinstance(services.health, HealthService)
        assert (await services.health.ready()).ok
        background.keep("the sweeper", Work(RuntimeError("no such column")))
        await until(lambda: bool(background.down))
        ready = await services.health.ready()
        assert (ready.ok, ready.store) == (False, "ok")
        assert ready.reason is not None
        assert "the sweeper failed" in ready.reason
        assert isinstance(services.metrics, MetricsService)
        (failures,) = [m for m in await services.metrics.read() if m.name == "task_failures_total"]
        assert [(sample.labels, sample.value) for sample in failures.samples] == [
            ({"task": "the sweeper"}, 1)
        ]
        await background.stop()


async def test_an_agent_that_cannot_be_ended_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its task's error was read by nobody."""
    monkeypatch.setattr(pools, "CLOSE_SECS", 0.05)

    class Stubborn:
        alive = True

        async def close(self) -> None:
            raise RuntimeError("a fault of ours")

    pool = AgentPool(1, 60)
    seat = await pool.take("app", "session")
    seat.agent = Stubborn()  # type: ignore[assignment]
    pool.give_back(seat, 0.0)
    assert not await pool.end_agent("session")
    await until(lambda: "the end of an agent failed" in caplog.text)
    assert await asyncio.wait_for(pool.take("app", "other"), BOUND)
