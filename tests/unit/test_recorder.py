"""What a turn's recorder writes is written once, whatever the store says of it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.agents import Ask
from clawdforge.core.models.events import Words
from clawdforge.core.ports import LeaseLost, Tx, View
from clawdforge.core.rules.quotas import Quotas
from clawdforge.core.rules.turns import Ending, StartedTurn, start_next, submit
from clawdforge.core.running import recorder
from clawdforge.core.running.bell import Bell
from clawdforge.core.running.outside_sink import OutsideSink
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.core.running.stops import LimitWatch, Stop
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.session import OnInterrupt, PermissionMode
from clawdforge.wire.turn import Outcome, TurnRequest
from tests.conformance.stores.samples import APP, a_session
from tests.unit.rpc_peer import until

Work = Callable[[Tx], Any]


class DoubtfulStore(SqliteStore):
    """A real one whose next writes fail, before or after the commit, or whose work is run once more."""

    plan: list[str]

    async def write(self, app: str, work: Work) -> Any:
        fate = self.plan.pop(0) if self.plan else "written"
        if fate == "not written":
            raise StoreUnavailable
        if fate == "run twice":
            with pytest.raises(ZeroDivisionError):
                await super().write(app, lambda tx: (work(tx), 1 / 0))
        result = await super().write(app, work)
        if fate == "written, but not told":
            raise StoreUnavailable
        return result


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[DoubtfulStore]:
    opened = await DoubtfulStore.open(tmp_path / "data", SystemClock())
    assert isinstance(opened, DoubtfulStore)
    opened.plan = []
    yield opened
    await opened.close()


async def start(store: DoubtfulStore) -> StartedTurn:
    row = a_session()

    def work(tx: Tx) -> StartedTurn | None:
        tx.add_session(row)
        submit(tx, row.session_id, TurnRequest(prompt="go"), None, 1)
        return start_next(tx, row.session_id, "node", 2)

    started: StartedTurn | None = await store.write(APP, work)
    assert started is not None
    return started


async def marks(store: DoubtfulStore, session_id: str) -> list[str]:
    events = await store.read(
        APP, lambda view: view.events(session_id, after=0, limit=100, max_bytes=1 << 30)
    )
    bodies = [orjson.loads(event.data) for event in events]
    assert [body["seq"] for body in bodies] == list(range(1, len(bodies) + 1))
    return [body["reason"] for body in bodies if body["type"] == "output.truncated"]


FATES = ["written", "not written", "written, but not told", "run twice"]


@pytest.mark.parametrize("then", FATES)
@pytest.mark.parametrize("first", FATES)
async def test_every_event_is_there_once_and_in_order(
    store: DoubtfulStore, monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    """S3-25: also when the store fails and heals."""
    monkeypatch.setattr(recorder, "RETRY_SECS", 0.001)
    clock = SystemClock()
    started = await start(store)
    writer = TurnRecorder(
        store, clock, PermissionService(store, clock, 1.0), APP, started, Progress(), LimitWatch({}, Stop())
    )
    store.plan = [first, then, first]
    writer.start_writing(patience=30.0, bell=Bell())
    await writer.report_truncation(1, "one")
    await until(lambda: len(store.plan) < 3)
    await writer.report_truncation(2, "two")
    await writer.report_truncation(3, "three")
    turn = await writer.end(Ending(outcome=Outcome.COMPLETED, stop_reason="end_turn"))
    assert turn.outcome is Outcome.COMPLETED
    assert await marks(store, started.session.session_id) == ["one", "two", "three"]


async def test_what_was_in_doubt_when_the_patience_ended_comes_with_the_end(
    store: DoubtfulStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3-25."""
    monkeypatch.setattr(recorder, "RETRY_SECS", 0.001)
    clock = SystemClock()
    for number, fate in enumerate(("not written", "written, but not told")):
        started = await start(store)
        writer = TurnRecorder(
            store,
            clock,
            PermissionService(store, clock, 1.0),
            APP,
            started,
            Progress(),
            LimitWatch({}, Stop()),
        )
        store.plan = [fate]
        bell = Bell()
        writer.start_writing(patience=-1.0, bell=bell)
        await writer.report_truncation(1, f"doubtful {number}")
        await bell.listen(within=10.0)
        assert isinstance(writer.failure, StoreUnavailable)
        await writer.report_truncation(1, "last")
        await writer.end(Ending(outcome=Outcome.INTERRUPTED, error="the store failed"))
        assert await marks(store, started.session.session_id) == [f"doubtful {number}", "last"]


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("policy", [OnInterrupt.RETRY, OnInterrupt.CONTINUE])
async def test_an_interrupted_turn_is_brought_back_once(
    store: DoubtfulStore, monkeypatch: pytest.MonkeyPatch, policy: OnInterrupt, fate: str
) -> None:
    """Also when nobody told that its end was written."""
    monkeypatch.setattr(recorder, "RETRY_SECS", 0.001)
    clock = SystemClock()
    started = await start(store)
    session_id = started.session.session_id
    await store.write(APP, lambda tx: tx.change_session(session_id, on_interrupt=policy))
    writer = TurnRecorder(
        store, clock, PermissionService(store, clock, 1.0), APP, started, Progress(), LimitWatch({}, Stop())
    )
    writer.start_writing(patience=30.0, bell=Bell())
    store.plan = [fate]
    await writer.end(Ending(outcome=Outcome.INTERRUPTED, error="the agent died"))
    turns = await store.read(APP, lambda view: view.turns(session_id))
    assert [(turn.turn_index, turn.retry_of) for turn in turns] == [(1, None), (2, 1)]


@pytest.mark.parametrize("mode", [PermissionMode.ASK, PermissionMode.APPROVE_ALL])
async def test_nothing_is_asked_or_decided_for_a_turn_whose_session_another_node_has_claimed(
    store: DoubtfulStore, mode: PermissionMode
) -> None:
    """It left a request that nobody could answer with a turn that had ended."""
    clock = SystemClock()
    started = await start(store)
    session_id = started.session.session_id
    started = replace(started, session=replace(started.session, permission_mode=mode))
    writer = TurnRecorder(
        store, clock, PermissionService(store, clock, 1.0), APP, started, Progress(), LimitWatch({}, Stop())
    )
    bell = Bell()
    writer.start_writing(patience=30.0, bell=bell)
    await store.write(APP, lambda tx: tx.claim(session_id, "another"))
    before = await store.read(APP, lambda view: view.session(session_id))
    verdict = await writer.ask(Ask(tool="edit", kind="edit", options=(), request={}))
    assert verdict.option_id is None
    await bell.listen(within=10.0)
    assert isinstance(writer.failure, LeaseLost)
    assert await store.read(APP, lambda view: view.session(session_id)) == before
    assert await store.read(APP, lambda view: view.permissions(session_id)) == []


async def test_what_an_agent_says_outside_of_a_turn_is_kept_only_while_its_node_has_the_session(
    store: DoubtfulStore,
) -> None:
    started = await start(store)
    session_id = started.session.session_id
    sink = OutsideSink(store, SystemClock(), APP, session_id, started.session.holder)
    await sink.report_truncation(1, "ours")
    await store.write(APP, lambda tx: tx.claim(session_id, "another"))
    await sink.report_truncation(1, "late")
    assert await marks(store, session_id) == ["ours"]


class Looked(Quotas):
    """How often somebody looked what there is room for."""

    looks: ClassVar[list[int]] = []

    def room(self, view: View) -> int | None:
        found = super().room(view)
        self.looks.append(found or 0)
        return found


@pytest.mark.parametrize(("share", "looks"), [(1 << 30, 1), (1 << 26, 3)])
async def test_what_there_is_plenty_of_is_not_looked_up_for_each_batch(
    store: DoubtfulStore, share: int, looks: int
) -> None:
    clock, started = SystemClock(), await start(store)
    quotas, told = Looked(bytes=share), (PermissionService(store, clock, 1.0), APP, started, Progress())
    writer = TurnRecorder(store, clock, *told, LimitWatch({}, Stop()), quotas)
    Looked.looks.clear()
    writer.start_writing(patience=30.0, bell=Bell())
    for number in range(3):
        await writer.emit_words(Words(EventType.TEXT, {"agent_session_id": "a"}, ["one ", "two "], [9, 9]))
        await until(lambda number=number: writer._written == 2 * number + 2)  # type: ignore[misc]
    assert len(Looked.looks) == looks
    assert writer._room_left is not None
    assert 0 < share - writer._room_left < 10_000
    await writer.end(Ending(outcome=Outcome.COMPLETED, stop_reason="end_turn"))
