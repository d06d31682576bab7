"""What a session is doing, in one word, kept on its row with each change of a turn, so that lists can ask."""

from typing import Final

from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import Tx, View
from clawdforge.wire.session import Activity
from clawdforge.wire.turn import Outcome, TurnState

AT_WORK: Final = frozenset({Activity.QUEUED, Activity.RUNNING, Activity.WAITING})


def find_activity(active: TurnRow | None, queued: int, last_outcome: Outcome | str | None) -> Activity:
    """From the turn that is running or waiting, the length of the queue, and how the last turn ended."""
    if active is not None:
        return Activity.WAITING if active.state is TurnState.WAITING else Activity.RUNNING
    return Activity.QUEUED if queued else rest_after(last_outcome)


def rest_after(last_outcome: Outcome | str | None) -> Activity:
    """What a session is at rest, when its last turn ended so."""
    if last_outcome == Outcome.INTERRUPTED:
        return Activity.INTERRUPTED
    return Activity.FAILED if last_outcome in (Outcome.FAILED, Outcome.TIMED_OUT) else Activity.IDLE


def when_queued(session: SessionRow) -> Activity:
    """After one more turn was put into its queue."""
    return session.activity if session.activity in AT_WORK else Activity.QUEUED


def when_ended(view: View, session_id: str, outcome: Outcome | str | None) -> Activity:
    """After its turn has ended so, or one was taken out of the queue: the next one, or rest."""
    return Activity.QUEUED if view.count_queued(session_id) else rest_after(outcome)


def note_activity(tx: Tx, session_id: str, *, before: int | None = None) -> None:
    """Find out from its turns what the session is doing, after they were changed otherwise than one by one.

    With `before`, nothing is left of the history from that message on.
    """
    said = tx.last_spoken_turn(session_id, before=before)
    last = tx.turn(session_id, said) if said else None
    outcome = None if last is None else last.outcome
    activity = find_activity(tx.active_turn(session_id), tx.count_queued(session_id), outcome)
    tx.change_session(session_id, activity=activity, last_outcome=outcome)
