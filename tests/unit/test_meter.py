"""The meter: what changed is measured, each session once; what fails costs nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.running import meter
from clawdforge.core.running.meter import Meter, find_workspace
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import SessionDamaged, StoreUnavailable
from tests.conformance.stores.samples import APP, a_session, make
from tests.unit.rpc_peer import until


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    found = await open_store(tmp_path / "data", SystemClock())
    yield found
    await found.close()


class Sizes:
    """Homes of as many bytes as they were measured times."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.fails: set[str] = set()

    async def measure(self, session_id: str, workspace: str | None) -> dict[DiskForm, int]:
        await asyncio.sleep(0)
        self.asked.append((session_id, workspace))
        if session_id in self.fails:
            raise OSError("unreadable")
        return {DiskForm.HOMES: len(self.asked)}


@asynccontextmanager
async def running(store: SqliteStore, sizes: Sizes) -> AsyncIterator[Meter]:
    found = Meter(store, sizes)
    task = asyncio.create_task(found.run())
    yield found
    task.cancel()
    await asyncio.wait({task})


async def homes(store: SqliteStore) -> int:
    return (await store.read(APP, lambda view: view.stored_bytes()))[DiskForm.HOMES]


async def test_a_session_that_changed_is_measured_once(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "REST_SECS", 0.01)
    sid, sizes = await make(store), Sizes()
    async with running(store, sizes) as found:
        for _ in range(3):
            found.look(APP, sid)
        assert not found.is_idle
        await until(lambda: found.is_idle)
        assert sizes.asked == [(sid, None)]
        assert await homes(store) == 1
        found.look(APP, sid)
        await until(lambda: found.is_idle)
    assert await homes(store) == 2


async def test_one_that_was_measured_rests_and_keeps_no_other_waiting(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "REST_SECS", 3600.0)
    first, second, sizes = await make(store), await make(store), Sizes()
    async with running(store, sizes) as found:
        found.look(APP, first)
        await until(lambda: found.is_idle)
        found.look(APP, first)
        found.look(APP, second)
        await until(lambda: len(sizes.asked) == 2)
        assert not found.is_idle, "the first is not forgotten"
    assert [session_id for session_id, _ in sizes.asked] == [first, second]


async def test_what_was_never_measured_is_at_the_start(store: SqliteStore) -> None:
    old = await make(store, a_session(last_turn=3))
    await make(store)
    await make(store, a_session(last_turn=1, deleted_at=5))
    sizes = Sizes()
    async with running(store, sizes) as found:
        await until(lambda: bool(sizes.asked) and found.is_idle)
    assert [session_id for session_id, _ in sizes.asked] == [old]
    again = Sizes()
    async with running(store, again) as found:
        found.look(APP, "unknown")
        await until(lambda: bool(again.asked) and found.is_idle)
    assert again.asked == [("unknown", None)]


async def test_one_that_cannot_be_measured_keeps_no_other_waiting(store: SqliteStore) -> None:
    bad, good, sizes = await make(store), await make(store), Sizes()
    sizes.fails = {bad}
    async with running(store, sizes) as found:
        found.look(APP, bad)
        found.look(APP, good)
        await until(lambda: found.is_idle)
    assert await homes(store) == 2


async def test_a_damaged_session_keeps_no_other_waiting(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good, sizes = await make(store), await make(store), Sizes()
    read, asked = store.read, []

    async def fail(app: str, work: object) -> object:
        asked.append(work)
        if len(asked) == 1:
            raise SessionDamaged
        return await read(app, work)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "read", fail)
    async with running(store, sizes) as found:
        found.look(APP, bad)
        found.look(APP, good)
        await until(lambda: found.is_idle)
    assert sizes.asked == [(good, None)]


async def test_a_store_that_fails_is_asked_again(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "STORE_RETRY_SECS", 0.0)
    sid, sizes = await make(store), Sizes()
    write, failures = store.write, iter([StoreUnavailable(), StoreUnavailable()])

    async def fail(app: str, work: object) -> object:
        for failure in failures:
            raise failure
        return await write(app, work)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "write", fail)
    async with running(store, sizes) as found:
        found.look(APP, sid)
        await until(lambda: len(sizes.asked) == 3 and found.is_idle)
    assert await homes(store) == 3


async def test_a_workspace_is_charged_to_the_session_that_it_was_made_for(store: SqliteStore) -> None:
    first = await make(store, a_session(session_id="one", cwd="/d/workspaces/one", own_cwd=True))
    fork = await make(store, a_session(session_id="two", cwd="/d/workspaces/one", own_cwd=True))
    named = await make(store, a_session(session_id="three", cwd="/srv/three"))

    async def found(session_id: str) -> str | None:
        return await store.read(APP, lambda view: find_workspace(view, session_id))

    assert [await found(each) for each in (first, fork, named, "unknown")] == ["one", None, None, None]
    await store.write(APP, lambda tx: tx.change_session(first, deleted_at=1))
    assert await found(fork) == "one"
