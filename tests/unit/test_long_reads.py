"""What is long is read a page at a time, and others run in between; counts come without the texts."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.log import SLICE_EVENTS, LogService
from clawdforge.core.models.events import StoredEvent, draft
from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.pacing.computing import Computing
from clawdforge.core.pacing.long_reads import FEW_ROWS, read_rows
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.paging import Place
from clawdforge.core.rules.queue import find_next
from clawdforge.core.rules.sessions import state_of
from clawdforge.core.rules.turns import WITHDRAWN_AT_ONCE, need_session, withdraw_some
from clawdforge.core.services import messages, transfer
from clawdforge.core.services.finishing import Finisher
from clawdforge.core.services.history import HistoryService
from clawdforge.core.services.messages import MessageService
from clawdforge.core.services.sessions import SessionService
from clawdforge.core.services.transfer import TransferService
from clawdforge.core.services.turns import TurnService
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import Stopping
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role
from clawdforge.wire.turn import IfBusy, TurnState

APP, SID = "alpha", "s-1"
T = TypeVar("T")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    row = SessionRow(app_name=APP, session_id=SID, agent="demo", cwd="/w", created_at=1, updated_at=1)
    await opened.write(APP, lambda tx: tx.add_session(row))
    yield opened
    await opened.close()


def queue(tx: Tx, index: int, if_busy: IfBusy = IfBusy.QUEUE) -> None:
    row = TurnRow(
        session_id=SID,
        turn_index=index,
        state=TurnState.QUEUED,
        prompt=f"prompt {index}",
        queued_at=1,
        if_busy=if_busy,
    )
    tx.add_turn(row)


async def passes_during(work: Awaitable[T]) -> tuple[int, T]:
    """What came out, and how often somebody else could run until then."""
    passes, is_done = 0, False

    async def count() -> None:
        nonlocal passes
        while not is_done:
            passes += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        result = await work
    finally:
        is_done = True
        await counting
    return passes, result


async def test_others_run_between_the_pages_of_a_long_transcript(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PAGE_MESSAGES", 5)
    monkeypatch.setattr(transfer, "PAGE", 5)

    def fill(tx: Tx) -> None:
        for number in range(101):
            tx.add_message(MessageRow(session_id=SID, role="user", content=f"text {number}", ts=1))

    await store.write(APP, fill)
    service = MessageService(store, SystemClock(), LogService(store, LoopTurns(), Computing()), LoopTurns())
    passes, found = await passes_during(service.transcript(APP, SID))
    assert [row.content for row in found.messages] == [f"text {number}" for number in range(101)]
    assert passes >= 20
    exporting = TransferService(store, None, LoopTurns(), Computing())  # type: ignore[arg-type]  # an export makes no session
    passes, exported = await passes_during(exporting.export(APP, SID))
    assert len(exported.messages) == 101
    assert passes >= 20


async def test_others_run_between_the_parts_of_a_long_log(store: SqliteStore) -> None:
    drafts = [draft(EventType.TEXT, 1, 1, {"content": f"word {number}"}) for number in range(1000)]

    def fill(tx: Tx) -> None:
        queue(tx, 1)
        first = tx.append(SID, [draft(EventType.TURN_STARTED, 1, 1)])
        last = tx.append(SID, drafts)
        tx.change_turn(SID, 1, state=TurnState.ENDED, first_seq=first, last_seq=last)

    await store.write(APP, fill)
    log = LogService(store, LoopTurns(), Computing())
    passes, page = await passes_during(log.page(APP, SID, after=0, limit=900))
    assert [event.seq for event in page] == list(range(1, 901))
    assert passes >= 9

    async def collect(recent: list[StoredEvent] | None) -> list[int]:
        return [event.seq async for part in log.turn_pages(APP, SID, 1, recent=recent) for event in part]

    passes, whole = await passes_during(collect(None))
    assert whole == list(range(2, 1002))
    assert passes >= 10
    passes, known = await passes_during(collect(page))
    assert known == list(range(1, 901))
    assert passes >= 9

    async def follow() -> list[int]:
        sizes: list[int] = []
        async for part in log.follow(APP, SID, after=0):
            sizes.append(len(part))
            if sum(sizes) == 1001:
                break
        return sizes

    assert max(await follow()) <= SLICE_EVENTS


async def test_whoever_waits_for_a_turn_reads_no_prompt(store: SqliteStore) -> None:
    def end(tx: Tx) -> None:
        queue(tx, 1)
        tx.change_turn(SID, 1, state=TurnState.ENDED, ended_at=5)

    await store.write(APP, end)
    whole = await store.read(APP, lambda v: v.turn(SID, 1))
    assert whole is not None
    assert whole.prompt
    nobody = cast("Any", None)  # not asked
    log = LogService(store, LoopTurns(), Computing())
    service = TurnService(store, SystemClock(), log, nobody, nobody)
    assert await service.wait(APP, SID, 1) == replace(whole, prompt="")


async def test_the_state_of_a_session_reads_no_queued_prompt(store: SqliteStore) -> None:
    def fill(tx: Tx) -> None:
        for index in range(1, 10):
            queue(tx, index, IfBusy.INTERRUPT if index == 7 else IfBusy.QUEUE)

    await store.write(APP, fill)
    seen: list[str] = []
    reader = store._reader.db
    assert reader is not None

    def note(_cursor: object, sql: str, _bindings: object) -> bool:
        seen.append(sql)
        return True

    reader.connection.exec_trace = note
    state = await store.read(APP, lambda v: state_of(v, need_session(v, SID)))
    reader.connection.exec_trace = None
    assert state.queued_turns == 9
    assert [sql for sql in seen if "prompt" in sql and "'queued'" in sql] == []
    first = await store.read(APP, lambda v: find_next(v, need_session(v, SID)))
    assert first is not None
    assert first.turn_index == 7
    counts = await store.read(
        APP, lambda v: (v.count_queued(SID, [IfBusy.INTERRUPT]), v.count_queued(SID, [IfBusy.ROLLBACK]))
    )
    assert counts == (1, 0)


class NoAgents:
    """A supervisor of nothing: no turn runs here."""

    async def end_agent(self, app: str, session_id: str) -> bool:  # noqa: ARG002 - part of what it stands for
        return True


async def test_a_session_with_a_long_queue_is_closed_in_parts(store: SqliteStore) -> None:
    def fill(tx: Tx) -> None:
        for index in range(1, 3 * WITHDRAWN_AT_ONCE + 1):
            queue(tx, index)

    await store.write(APP, fill)
    before = store.job_times.samples()[-1].value
    nobody = cast("Any", None)  # not asked
    agents = cast("Any", NoAgents())
    service = SessionService(store, SystemClock(), nobody, nobody, nobody, agents, nobody, nobody)
    assert await service.close(APP, SID) is False
    assert store.job_times.samples()[-1].value - before >= 5
    row = await store.read(APP, lambda v: need_session(v, SID))
    assert row.closed_at is not None
    assert await store.read(APP, lambda v: v.count_queued(SID)) == 0


async def test_a_long_queue_is_emptied_a_part_at_a_time(store: SqliteStore) -> None:
    def fill(tx: Tx) -> None:
        for index in range(1, WITHDRAWN_AT_ONCE + 3):
            queue(tx, index)

    await store.write(APP, fill)
    taken = [await store.write(APP, lambda tx: withdraw_some(tx, SID, 2)) for _ in range(3)]
    assert taken == [WITHDRAWN_AT_ONCE, 2, 0]


READS: dict[str, Callable[[View], Any]] = {
    "messages": lambda view: view.message_page(SID, after=0, limit=900, max_bytes=1 << 20, show="visible"),
    "turns": lambda view: view.turn_page(SID, after=0, limit=900, max_bytes=1 << 20),
}


@pytest.mark.parametrize("name", READS)
async def test_many_rows_are_read_beside_the_event_loop_and_few_in_it(store: SqliteStore, name: str) -> None:
    def fill(tx: Tx) -> None:
        for index in range(1, 1001):
            queue(tx, index)
            tx.add_message(MessageRow(session_id=SID, role=Role.USER, content=f"message {index}", ts=1))

    await store.write(APP, fill)
    threads: list[int] = []

    def work(view: View) -> Any:
        threads.append(threading.get_ident())
        return READS[name](view)

    few, _ = await passes_during(read_rows(store, APP, FEW_ROWS, work))
    many, found = await passes_during(read_rows(store, APP, FEW_ROWS + 1, work))
    assert (threads[0] == threading.get_ident(), threads[1] == threading.get_ident()) == (True, False)
    assert few == 0 < many
    assert len(found[0]) == 900


async def test_a_page_of_messages_and_a_search_are_long_reads(store: SqliteStore) -> None:
    def fill(tx: Tx) -> None:
        for index in range(FEW_ROWS + 1):
            tx.add_message(MessageRow(session_id=SID, role=Role.USER, content=f"message {index}", ts=1))

    await store.write(APP, fill)
    nobody = cast("Any", None)  # not asked
    turns = LoopTurns()
    service = MessageService(store, SystemClock(), LogService(store, turns, Computing()), turns)
    passes, span = await passes_during(service.page(APP, SID, Place(), 1000))
    assert (passes > 0, len(span.rows)) == (True, FEW_ROWS + 1)
    history = HistoryService(store, SystemClock(), nobody, nobody, nobody, Finisher(store))
    passes, (hits, _) = await passes_during(history.search(APP, "message", 3, None, None))
    assert (passes > 0, len(hits)) == (True, 3)


async def test_a_long_read_holds_up_the_end_of_the_store_and_none_comes_after_it(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data", SystemClock())
    begun, go_on = threading.Event(), threading.Event()

    def work(_view: View) -> str:
        begun.set()
        assert go_on.wait(30)
        return "read"

    reading = asyncio.create_task(store.read_long(APP, work))
    assert await asyncio.to_thread(begun.wait, 30)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    go_on.set()
    assert await reading == "read"
    await closing
    with pytest.raises(Stopping):
        await store.read_long(APP, work)
