"""The tail of a followed session: a reader near its end looks at what is new, and misses nothing of it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from clawdforge.core.clock import SystemClock
from clawdforge.core.log import TAIL_EVENTS, LogService, Tail
from clawdforge.core.models.events import StoredEvent, draft
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Store, Tx, View
from clawdforge.stores import open_store
from clawdforge.wire.event import EventType
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
