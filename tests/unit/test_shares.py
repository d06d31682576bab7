"""The rate of an app's requests, with a clock that the test moves."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.rows import AppRow
from clawdforge.core.services.shares import WINDOW_SECS, Share, ShareService
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore


class Moved(SystemClock):
    at = 1_000 * SECOND

    def steady(self) -> int:
        return self.at


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


async def is_refused(shares: ShareService, app: str) -> bool:
    rate = await shares.count_request(app)
    assert rate
    return rate.refusal is not None


async def test_requests_come_back_with_time_and_never_more_than_a_window_of_them(store: SqliteStore) -> None:
    clock = Moved()
    shares = ShareService(store, clock, Share(max_requests_per_sec=2))
    left = [rate.left for _ in range(2 * WINDOW_SECS) if (rate := await shares.count_request("a"))]
    assert left == list(range(2 * WINDOW_SECS - 1, -1, -1))
    refused = await shares.count_request("a")
    assert refused
    assert refused.refusal
    assert (refused.left, refused.full_in, refused.refusal.retry_after) == (0, 10, 1)
    assert not await is_refused(shares, "b"), "another app has its own"
    clock.at += SECOND // 2
    assert not await is_refused(shares, "a"), "half a second brings one"
    assert await is_refused(shares, "a")
    clock.at += 3600 * SECOND
    rate = await shares.count_request("a")
    assert rate
    assert (rate.quota, rate.left, rate.full_in) == (20, 19, 1)


async def test_what_the_operator_sets_counts_at_once_and_the_rest_is_the_default(store: SqliteStore) -> None:
    clock = Moved()
    shares = ShareService(store, clock, Share(max_requests_per_sec=2, max_readers=9))
    await shares.count_request("a")
    await store.write_system(lambda tx: tx.put_app(AppRow("a", 1, max_requests_per_sec=50)))
    shares.forget("a")
    rate = await shares.count_request("a")
    assert rate
    assert (rate.quota, rate.left) == (500, 499)
    allowed, _ = await shares.usage("a")
    set_ones = {name: value for name, value in allowed.limits.items() if value is not None}
    assert set_ones == {"max_requests_per_sec": 50, "max_readers": 9}
    assert allowed.own == {"max_requests_per_sec"}
    assert allowed.sources["max_readers"] == "default"
    assert await shares.count_request("local") is None
