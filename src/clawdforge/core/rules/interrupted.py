"""A turn that was cut off: ended with what it said so far, then handled by its session's policy."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

import orjson

from clawdforge.core.models.events import AgentEvent, StoredEvent
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.cuts import cut_turn
from clawdforge.core.rules.leases import give_up, is_held_elsewhere
from clawdforge.core.rules.projection import Projection
from clawdforge.core.rules.purses import can_reserve, is_asked_about
from clawdforge.core.rules.queue import FIRST_IN_QUEUE
from clawdforge.core.rules.traces import find_traceparent
from clawdforge.core.rules.turns import Ending, finish, need_session, queue_turn
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.event import EventType, join_words
from clawdforge.wire.session import OnInterrupt
from clawdforge.wire.turn import IfBusy, Outcome, TurnState

GO_ON = "You were cut off. Go on where you stopped; do not repeat what you have already said or done."
GOING_ON = (OnInterrupt.CONTINUE, OnInterrupt.RETRY)  # any other word, also one put there by hand, holds
PAGE_EVENTS = 2000
PAGE_BYTES = 4 << 20
MESSAGE_KINDS = {
    kind.value: kind
    for kind in (
        EventType.TEXT,
        EventType.THINKING,
        EventType.TOOL_CALL,
        EventType.TOOL_UPDATE,
        EventType.PLAN,
    )
}
"""The kinds that a message is made of; no other is even decoded."""
WORDS = (EventType.TEXT, EventType.THINKING)


def end_interrupted_turn(tx: Tx, session_id: str, reason: str, at: Micros) -> None:
    """End the turn that was cut off, and queue what the session's policy wants instead of it."""
    turn = tx.active_turn(session_id)
    if turn is None:
        return
    ending = Ending(
        outcome=Outcome.INTERRUPTED,
        error=reason,
        code=ErrorCode.TURN_INTERRUPTED,
        reached_agent=not is_asked_about(tx, turn),
    )
    message = project_turn(tx, turn).make_message(session_id, turn.turn_index, at)
    ended = finish(tx, session_id, turn.turn_index, ending, at, message=message)
    if tx.count_queued(session_id, [IfBusy.ROLLBACK]):
        cut_turn(tx, session_id, turn.turn_index, at)
    apply_policy(tx, ended, at)


def adopt(tx: Tx, session_id: str, node: str, reason: str, at: Micros) -> None:
    """End the turn that a dead node has left; what waits behind it, any node may run.

    Whatever the dead one still writes is fenced off from here on. A turn that somebody has started since,
    here or elsewhere, is left alone.
    """
    session = tx.session(session_id)
    if session is None or session.holder == node or is_held_elsewhere(tx, session, node):
        return
    if tx.active_turn(session_id) is None:
        return
    tx.claim(session_id, node)
    end_interrupted_turn(tx, session_id, reason, at)
    give_up(tx, session_id, node)


def project_turn(view: View, turn: TurnRow) -> Projection:
    """What the agent said and did in a turn, from the log."""
    projection = Projection()
    for event in _read_agent_events(view, turn):
        projection.feed(event)
    return projection


def apply_policy(tx: Tx, turn: TurnRow, at: Micros) -> TurnRow | None:
    """`continue` and `retry` are tried once by themselves, never in a loop.

    A turn that somebody wanted to make way for another is not brought back.
    """
    session = need_session(tx, turn.session_id)
    if turn.automatic or session.closed_at is not None or session.on_interrupt not in GOING_ON:
        return None
    if tx.count_queued(turn.session_id, FIRST_IN_QUEUE):
        return None
    again = session.on_interrupt is OnInterrupt.RETRY
    if not can_reserve(tx, session, turn, at):
        return None  # it stays as it is held; nobody is there to be told that a budget is used up
    if again:
        cut_turn(tx, turn.session_id, turn.turn_index, at, why="retry")
        session = need_session(tx, turn.session_id)
    return queue_turn(
        tx,
        session,
        TurnRow(
            session_id=turn.session_id,
            turn_index=0,
            state=TurnState.QUEUED,
            prompt=turn.prompt if again else GO_ON,
            files=turn.files if again else (),
            queued_at=at,
            timeout_secs=turn.timeout_secs,
            limits=turn.limits,
            retry_of=turn.turn_index,
            automatic=True,
            token_id=turn.token_id,
            traceparent=find_traceparent(turn),
        ),
        at,
    )


def _read_agent_events(view: View, turn: TurnRow) -> Iterator[AgentEvent]:
    after = (turn.first_seq or 1) - 1
    while batch := view.turn_events(
        turn.session_id, turn.turn_index, after=after, limit=PAGE_EVENTS, max_bytes=PAGE_BYTES
    ):
        after = batch[-1].seq
        for name, run in groupby(batch, key=attrgetter("type")):
            if name in MESSAGE_KINDS:
                yield from (
                    AgentEvent(MESSAGE_KINDS[name], fields)
                    for fields in _read_fields(MESSAGE_KINDS[name], list(run))
                )


def _read_fields(kind: EventType, events: list[StoredEvent]) -> list[Json]:
    """The fields of consecutive events of one kind. Chunks of text are joined: there may be a million."""
    words = join_words([event.data for event in events]) if kind in WORDS else None
    return _decode_page(events) if words is None else [{"content": words}]


def _decode_page(events: list[StoredEvent]) -> list[Json]:
    """Decode a page at once. A damaged event must not keep the server from starting."""
    try:
        page: list[Json] = orjson.loads(b"[" + b",".join(event.data for event in events) + b"]")
    except orjson.JSONDecodeError:
        return [_decode_event(event) for event in events]
    sound = len(page) == len(events) and all(isinstance(fields, dict) for fields in page)
    return page if sound else [_decode_event(event) for event in events]


def _decode_event(event: StoredEvent) -> Json:
    try:
        fields = orjson.loads(event.data)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}
