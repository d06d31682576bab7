"""The tail of a followed session: a reader near its end looks at what is new, and misses nothing of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from clawdforge.core.clock import SystemClock
from clawdforge.core.log import LogService
from clawdforge.core.models.events import StoredEvent, draft
from clawdforge.core.models.stretches import Stretch
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.tail import READ_BYTES, TAIL_EVENTS, Tail
from clawdforge.stores import open_store
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import Form
from tests.unit.test_history_sets import APP, SID, a_session


class Counted(StoredEvent):
    """An event that counts how often its number is asked for."""

    asked = 0

    def __getattribute__(self, name: str) -> object:
        if name == "seq":
            Counted.asked += 1
        return super().__getattribute__(name)


async def test_it_costs_what_is_new() -> None:
    tail = Tail()
    tail.extend(tuple(Counted(seq, "text", 1, b"x") for seq in range(1, TAIL_EVENTS + 1)))
    Counted.asked = 0
    found = tail.events_after(TAIL_EVENTS - 2)
    assert found is not None
    assert Counted.asked < 10
    assert [event.seq for event in found] == [TAIL_EVENTS - 1, TAIL_EVENTS]
    assert tail.events_after(TAIL_EVENTS) == []
    whole = tail.events_after(0)
    assert whole is not None
    assert [event.seq for event in whole] == list(range(1, TAIL_EVENTS + 1))


class Hasty:
    """A store in which somebody writes whenever a reader has found nothing, before it does anything else."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.left = 3

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, app: str, work: Callable[[View], Any]) -> Any:
        found = await self._store.read(app, work)
        if found == [] and self.left:
            self.left -= 1
            await self._store.write(APP, say)
        return found


def say(tx: Tx) -> None:
    tx.append(SID, [draft(EventType.TEXT, None, 1, {"content": "word"})])


async def test_what_is_written_right_behind_a_read_is_not_missed(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data", SystemClock())
    await store.write(APP, lambda tx: tx.add_session(a_session(SID)))
    log = LogService(cast("Store", Hasty(store)), LoopTurns(), Computing())
    seen: list[int] = []
    async with asyncio.timeout(10):
        async for batch in log.follow(APP, SID, 0):
            seen += [event.seq for event in batch]
            if len(seen) < 3:
                await store.write(APP, say)
            else:
                break
    assert seen == list(range(1, len(seen) + 1))
    await store.close()


def say_much(tx: Tx) -> None:
    for _ in range(100):
        say(tx)


async def test_what_is_sent_is_made_once_for_all_readers(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data", SystemClock())
    await store.write(APP, lambda tx: tx.add_session(a_session(SID)))
    await store.write(APP, say)
    log = LogService(store, LoopTurns(), Computing())
    made: list[tuple[int, Form]] = []

    def make(stretch: Stretch, form: Form) -> bytes:
        made.append((stretch.first, form))
        return b"".join(event.make(form) for event in stretch.events)

    readers = [(form, log.follow_stretches(APP, SID, 0, form)) for form in Form for _ in range(5)]
    for _ in range(4):
        found = set()
        for form, reader in readers:
            batch = await anext(reader)
            found.add(b"".join(stretch.once(make, form) for stretch in batch))
        assert len(found) == len(Form)
        await store.write(APP, say_much)
    assert len(made) == len({*made}) == 4 * len(Form)
    for _, reader in readers:
        await reader.aclose()
    await store.close()


async def test_readers_that_resume_at_the_same_place_share_what_is_read(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data", SystemClock())
    await store.write(APP, lambda tx: tx.add_session(a_session(SID)))
    for _ in range(4):
        await store.write(APP, say_much)
    log = LogService(store, LoopTurns(), Computing())
    readers = [log.follow_stretches(APP, SID, 0) for _ in range(5)]
    for _ in range(4):
        batches = [await anext(reader) for reader in readers]
        assert all(mine is first for batch in batches for mine, first in zip(batch, batches[0], strict=True))
    for reader in readers:
        await reader.aclose()
    await store.close()


def test_a_tail_gives_a_reader_what_fits_into_a_send_and_the_rest_when_it_comes_again() -> None:
    tail, after, seen = Tail(), 0, []
    for first in (1, 301):
        tail.extend([StoredEvent(seq, "text", 1, b"x" * 200) for seq in range(first, first + 300)])
    assert tail.read(600) == []
    while batch := tail.read(after):
        assert sum(stretch.size for stretch in batch) <= READ_BYTES
        seen += [event.seq for stretch in batch for event in stretch.events]
        after = batch[-1].last
    assert seen == list(range(1, 601))
    part = tail.read(150)
    assert part is not None
    assert part[0].first == 151
