"""A turn that was cut off: settled with what it said, and then what its session's policy wants."""

from collections.abc import Iterator

import orjson

from clawdforge.core.cuts import cut_turn
from clawdforge.core.model import TurnRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.projection import Projection
from clawdforge.core.rules import Ending, finish, need_session, queue_turn
from clawdforge.wire.base import Micros
from clawdforge.wire.error import ErrorCode
from clawdforge.wire.event import EventType
from clawdforge.wire.session import OnInterrupt
from clawdforge.wire.turn import Outcome, TurnState

GO_ON = "You were cut off. Go on where you stopped; do not repeat what you have already said or done."
PAGE_EVENTS = 2000
PAGE_BYTES = 4 << 20


def settle(tx: Tx, session_id: str, reason: str, at: Micros) -> None:
    """End the turn that was cut off, and queue what the session's policy wants instead of it."""
    turn = tx.active_turn(session_id)
    if turn is None:
        return
    projection = Projection()
    for event in _agent_events(tx, turn):
        projection.feed(EventType(str(event["type"])), event)
    ending = Ending(outcome=Outcome.INTERRUPTED, error=reason, code=ErrorCode.TURN_INTERRUPTED)
    message = projection.message(session_id, turn.turn_index, at)
    ended = finish(tx, session_id, turn.turn_index, ending, at, message=message)
    apply_policy(tx, ended, at)


def apply_policy(tx: Tx, turn: TurnRow, at: Micros) -> TurnRow | None:
    """`continue` and `retry` are tried once by themselves, never in a loop."""
    session = need_session(tx, turn.session_id)
    if turn.automatic or session.closed_at is not None or session.on_interrupt is OnInterrupt.HOLD:
        return None
    again = session.on_interrupt is OnInterrupt.RETRY
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
            retry_of=turn.turn_index,
            automatic=True,
        ),
        at,
    )


def _agent_events(view: View, turn: TurnRow) -> Iterator[dict[str, object]]:
    after = 0
    while batch := view.turn_events(
        turn.session_id, turn.turn_index, after=after, limit=PAGE_EVENTS, max_bytes=PAGE_BYTES
    ):
        after = batch[-1].seq
        for event in batch:
            yield orjson.loads(event.data)
