"""Long words become several events, and each write of them is short."""

import asyncio

import orjson

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import MOST_WORDS, AgentEvent
from clawdforge.core.rules.turns import Ending, StartedTurn
from clawdforge.core.running.bell import Bell
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.core.running.stops import LimitWatch, Stop
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome
from tests.conformance.stores.samples import APP
from tests.unit import test_recorder
from tests.unit.test_recorder import DoubtfulStore, start

store = test_recorder.store


def recorder_of(store: DoubtfulStore, started: StartedTurn) -> TurnRecorder:
    clock = SystemClock()
    permissions = PermissionService(store, clock, 1.0)
    return TurnRecorder(store, clock, permissions, APP, started, Progress(), LimitWatch({}, Stop()))


async def test_a_long_text_is_many_short_writes_and_reads_as_one(store: DoubtfulStore) -> None:
    """One of 24 MiB kept every other writer waiting for a tenth of a second."""
    words = "".join(f"{number} \u00e9\n" for number in range(3 * MOST_WORDS // 8))
    started = await start(store)
    one = recorder_of(store, started)
    one.start_writing(1, Bell())
    written: list[int] = []
    store.listen(lambda commit: written.append(sum(len(event.data) for event in commit.events)))
    await one.emit(AgentEvent(EventType.TEXT, {"agent_session_id": "a", "content": words}), len(words))
    await one.emit(AgentEvent(EventType.TEXT, {"content": "short", "_meta": "x" * 5000}), 6000)
    await one.emit(AgentEvent(EventType.RESPONSE, {"result": {}}), 20)
    turn = await one.end(Ending(outcome=Outcome.COMPLETED))
    assert turn.outcome is Outcome.COMPLETED
    assert len(written) > 3
    assert max(written) < 3 * MOST_WORDS
    row = started.session
    found = await store.read(
        APP, lambda view: view.turn_events(row.session_id, 1, after=0, limit=100, max_bytes=1 << 30)
    )
    said = [orjson.loads(event.data) for event in found if event.type == EventType.TEXT]
    assert "".join(event["content"] for event in said) == words + "short"
    assert {event["agent_session_id"] for event in said[:-1]} == {"a"}
    (message,) = await store.read(
        APP, lambda view: view.messages(row.session_id, after=1, limit=10, show="all")
    )
    assert message.content == words + "short"


async def test_a_long_text_that_is_cut_off_is_kept_in_short_writes(store: DoubtfulStore) -> None:
    started = await start(store)
    one = recorder_of(store, started)
    one.start_writing(1, Bell())
    written: list[int] = []
    store.listen(lambda commit: written.append(sum(len(event.data) for event in commit.events)))
    saying = asyncio.create_task(
        one.emit(AgentEvent(EventType.TEXT, {"content": "x" * (8 * MOST_WORDS)}), 8 * MOST_WORDS)
    )
    await asyncio.sleep(0)
    await one.end(Ending(outcome=Outcome.CANCELLED, stop_reason="cancelled"))
    await saying
    assert sum(written) > 8 * MOST_WORDS
    assert max(written) < 4 * MOST_WORDS


async def test_what_was_said_is_kept_although_the_agent_is_broken_off(store: DoubtfulStore) -> None:
    """Whoever reads from it is cancelled then, in the middle of a text that waits for the store."""
    started = await start(store)
    one = recorder_of(store, started)
    one.start_writing(1, Bell())
    words = "".join(f"{number}, " for number in range(MOST_WORDS))
    saying = asyncio.create_task(one.emit(AgentEvent(EventType.TEXT, {"content": words}), len(words)))
    await asyncio.sleep(0)
    saying.cancel()
    await asyncio.wait({saying})
    assert saying.cancelled()
    await one.end(Ending(outcome=Outcome.CANCELLED, stop_reason="cancelled"))
    found = await store.read(
        APP,
        lambda view: view.turn_events(started.session.session_id, 1, after=0, limit=100, max_bytes=1 << 30),
    )
    said = [orjson.loads(event.data)["content"] for event in found if event.type == EventType.TEXT]
    assert len(said) > 5
    assert "".join(said) == words


async def test_a_long_answer_is_written_with_the_end_of_its_turn(store: DoubtfulStore) -> None:
    started = await start(store)
    one = recorder_of(store, started)
    commits: list[list[str]] = []
    store.listen(lambda commit: commits.append([event.type for event in commit.events]))
    one.start_writing(1, Bell())
    await one.emit(AgentEvent(EventType.TEXT, {"content": "x" * (2 * MOST_WORDS)}), 2 * MOST_WORDS)
    await one.emit(AgentEvent(EventType.RESPONSE, {"result": {"x": "y" * MOST_WORDS}}), MOST_WORDS)
    await one.end(Ending(outcome=Outcome.COMPLETED))
    assert len(commits) > 1
    assert commits[-1][-2:] == ["response", "turn.ended"]


def test_words_with_much_beside_them_stay_in_one_event() -> None:
    """What is beside them would be in each."""
    long = "x" * (2 * MOST_WORDS)
    event = AgentEvent(EventType.TEXT, {"content": long, "update": {"_meta": "y" * 5000}})
    assert list(event.in_parts()) == [event]
    picture = AgentEvent(EventType.TOOL_UPDATE, {"content": long})
    assert list(picture.in_parts()) == [picture]
    parts = list(AgentEvent(EventType.THINKING, {"content": long + "!"}).in_parts())
    assert [len(part.fields["content"]) for part in parts] == [MOST_WORDS, MOST_WORDS, 1]
