"""The writer of Postgres is shared out as that of SQLite: apps are charged, batches close, jobs are named."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import Tx
from clawdforge.stores.postgres import writer
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.stores.postgres.works import Works
from clawdforge.stores.sqlite import job_times
from clawdforge.stores.sqlite.job_queue import JobQueue
from clawdforge.stores.sqlite.writer import Batch
from clawdforge.wire.errors import StoreUnavailable
from tests.conformance.stores.samples import APP, make, said
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(database, SystemClock())
    yield store
    await store.close()


@pytest.mark.parametrize("is_plain", [False, True])
async def test_each_app_is_charged_for_what_its_jobs_took(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    """Nobody was, so that a noisy app had all of the writer, whatever its share."""
    charged: list[tuple[dict[str, float], float]] = []
    sid = await make(store)
    monkeypatch.setattr(JobQueue, "charge", lambda _, jobs, rest: charged.append((dict(jobs), rest)))
    monkeypatch.setattr(Works, "is_plain", lambda *_: is_plain)
    await store.write(APP, lambda tx: tx.append(sid, [said("one")]))
    (jobs, rest), *_ = charged
    assert jobs[APP] > 0
    assert rest > 0


@pytest.mark.parametrize("is_plain", [False, True])
async def test_a_batch_of_several_apps_soon_closes_to_each(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    sizes: list[int] = []
    hand_over = writer.PgWriter._hand_over

    def note(of: writer.PgWriter, batch: Batch, failure: StoreUnavailable | None) -> None:
        sizes.append(len(batch.jobs))
        hand_over(of, batch, failure)

    monkeypatch.setattr(writer, "SHARED_BATCH_SECS", 0.0)
    monkeypatch.setattr(writer, "MAX_BATCH_SECS", 60.0)
    monkeypatch.setattr(writer.PgWriter, "_hand_over", note)
    monkeypatch.setattr(Works, "is_plain", lambda *_: is_plain)
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: Tx) -> None:
        begun.set()
        go_on.wait(30)

    jobs = [asyncio.ensure_future(store.write("first", hold))]
    await asyncio.to_thread(begun.wait, 30)
    apps = ("noisy", "quiet", "noisy", "other", "noisy")
    jobs += [asyncio.ensure_future(store.write(app, lambda _: None)) for app in apps]
    await asyncio.sleep(0)  # all of them are submitted
    go_on.set()
    await asyncio.gather(*jobs)
    assert sizes == [1, 3, 2], "the last two are one app's alone"


async def test_a_job_that_computes_for_long_is_named_in_a_warning(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(job_times, "SLOW_JOB_CPU_SECS", -1.0)

    def count_to_ten(tx: Tx) -> int:  # noqa: ARG001 - what every job gets
        return sum(range(10))

    with caplog.at_level(logging.WARNING):
        await store.write(APP, count_to_ten)
    assert "count_to_ten kept the store's writer busy" in caplog.text
