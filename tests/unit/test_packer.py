"""The packer: it packs what is old enough and nothing else, and a session that is damaged costs no other."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules.packing import last_old_event
from clawdforge.core.services import packing
from clawdforge.core.services.packing import Packer
from clawdforge.stores import open_store
from clawdforge.stores.sqlite import early_packs
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import a_turn

APP = "alpha"
NOW = 1_000_000 * SECOND
AFTER_SECS = 100
BEFORE = NOW - AFTER_SECS * SECOND


class Still:
    """A clock that stands where it was set."""

    def __init__(self) -> None:
        self.wall = NOW

    def now(self) -> int:
        return self.wall

    def steady(self) -> int:
        return 0


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    """Its sessions are made at once; their events are rows, as if each had come by itself."""
    monkeypatch.setattr(early_packs, "LEAST", 1_000_000)
    clock = Still()
    opened = await open_store(tmp_path / "data", clock)
    yield opened
    await opened.close()


@pytest.fixture
def packer(store: SqliteStore) -> Packer:
    return Packer(store, Still(), AFTER_SECS)


async def make(store: Store, session_id: str, turns: list[tuple[TurnState, int]], updated: int = NOW) -> None:
    """A session whose turns have ten events each; with each turn's state and end."""

    def work(tx: Tx) -> None:
        row = SessionRow(app_name=APP, session_id=session_id, agent="a", cwd="/", created_at=1, updated_at=1)
        tx.add_session(row)
        tx.append(session_id, [draft(EventType.SESSION_CREATED, None, 1, {"agent": "a", "cwd": "/"})])
        for index, (state, ended_at) in enumerate(turns, 1):
            last = tx.append(session_id, [draft(EventType.TEXT, index, 1, {"content": "x"})] * 10)
            end = {"last_seq": last, "ended_at": ended_at} if state is TurnState.ENDED else {}
            tx.add_turn(a_turn(session_id, index, state=state, first_seq=last - 9, **end))
        tx.change_session(session_id, updated_at=updated)

    await store.write(APP, work)


async def packed(store: SqliteStore, session_id: str) -> tuple[int, int]:
    """How far it is packed, and how many rows are left."""

    def work(tx: Any) -> tuple[int, int]:
        sql = (
            "SELECT (SELECT coalesce(max(last_seq), 0) FROM packs WHERE session_id = ?1),"
            " (SELECT count(*) FROM events WHERE session_id = ?1)"
        )
        (found,) = tx._db.plain.connection.execute(sql, (session_id,))
        return found  # type: ignore[no-any-return]

    return await store.write(APP, work)


ENDED, RUNNING, QUEUED = TurnState.ENDED, TurnState.RUNNING, TurnState.QUEUED


@pytest.mark.parametrize(
    ("turns", "updated", "through"),
    [
        ([], NOW, 0),
        ([], BEFORE, 0),
        ([], BEFORE - 1, 1),
        ([(ENDED, BEFORE)], NOW, 0),
        ([(ENDED, BEFORE - 1)], NOW, 11),
        ([(ENDED, BEFORE - 1)], BEFORE - 1, 11),
        ([(ENDED, BEFORE - 2), (ENDED, BEFORE - 1), (ENDED, BEFORE)], NOW, 21),
        ([(ENDED, BEFORE - 2), (RUNNING, 0)], NOW, 11),
        ([(ENDED, BEFORE - 2), (RUNNING, 0)], BEFORE - 1, 11),
        ([(RUNNING, 0), (ENDED, BEFORE - 2)], NOW, 1),
        ([(RUNNING, 0)], BEFORE - 1, 0),
        ([(ENDED, BEFORE - 2), (QUEUED, 0)], BEFORE - 1, 21),
    ],
)
async def test_turns_that_ended_long_enough_ago_are_packed(
    store: SqliteStore, packer: Packer, turns: list[tuple[TurnState, int]], updated: int, through: int
) -> None:
    await make(store, "s1", turns, updated)
    assert await store.read(APP, lambda view: last_old_event(view, "s1", BEFORE)) == through
    await packer.pack_all()
    assert await packed(store, "s1") == (through, 10 * len(turns) + 1 - through)


async def test_an_unknown_session_has_nothing_old(store: SqliteStore) -> None:
    assert await store.read(APP, lambda view: last_old_event(view, "unknown", NOW)) == 0


@pytest.mark.parametrize("page", [1, 2, 3, 100])
async def test_every_session_is_found(
    store: SqliteStore, packer: Packer, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(packing, "PAGE", page)
    for number in range(3):
        await make(store, f"s{number}", [(ENDED, 1)], updated=1)
    await packer.pack_all()
    assert [await packed(store, f"s{number}") for number in range(3)] == [(11, 0)] * 3


async def test_a_damaged_session_costs_no_other(
    store: SqliteStore, packer: Packer, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a-damaged", "b-sound"):
        await make(store, name, [(ENDED, 1)], updated=1)
    await packer.pack_all()

    def spoil(tx: Any) -> None:
        tx._db.plain.connection.execute("UPDATE packs SET data = x'00' WHERE session_id = 'a-damaged'")

    await store.write(APP, spoil)
    more = draft(EventType.TEXT, None, 1, {"content": "x"})
    for name in ("a-damaged", "b-sound"):
        await store.write(APP, lambda tx, name=name: tx.append(name, [more]))  # type: ignore[misc]
        await store.write(APP, lambda tx, name=name: tx.change_session(name, updated_at=1))  # type: ignore[misc]
    for _ in range(2):
        await packer.pack_all()
    assert await packed(store, "a-damaged") == (11, 1)
    assert await packed(store, "b-sound") == (12, 0)
    told = [record for record in caplog.records if "cannot be packed" in record.message]
    assert len(told) == 1, "once"


async def test_while_the_store_is_away_it_is_tried_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(store, "s1", [(ENDED, 1)], updated=1)
    pack, tries, done = store.pack, 0, asyncio.Event()

    async def fail_at_first(app: str, session_id: str, through: int) -> bool:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise StoreUnavailable
        result = await pack(app, session_id, through)
        done.set()
        return result

    monkeypatch.setattr(store, "pack", fail_at_first)
    task = asyncio.create_task(Packer(store, SystemClock(), 0.001).run())
    async with asyncio.timeout(60):
        await done.wait()
    assert await packed(store, "s1") == (11, 0)
    assert not task.done()
    task.cancel()


async def test_what_was_begun_goes_on_after_a_restart(store: SqliteStore) -> None:
    await make(store, "s1", [(ENDED, 1)] * 120, updated=1)
    assert await store.pack(APP, "s1", 5)
    assert await store.pack(APP, "s1", 600)
    again = await open_store(store.path.parent, Still())
    await Packer(again, Still(), AFTER_SECS).pack_all()
    assert await packed(again, "s1") == (1201, 0)
    await again.close()
