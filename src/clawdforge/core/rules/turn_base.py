"""Which files a turn began with: those that the turn before it left, or that an undo or redo put there."""

from dataclasses import dataclass
from typing import Final

import orjson

from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import View
from clawdforge.core.rules.turns import need_session
from clawdforge.wire.errors import TurnNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import TurnState

MOVES_FILES: Final = frozenset({EventType.HISTORY_CUT.value, EventType.HISTORY_RESTORED.value})
PAGE_EVENTS: Final = 200
PAGE_BYTES: Final = 1 << 20
FIRST_CONTEXT: Final = 1


@dataclass(frozen=True, slots=True)
class Beginning:
    """`before` is the turn whose tree is meant, None for what a fork began with. `walk` names the events,
    after the first number and before the second, in which files may have been moved since."""

    session: SessionRow
    turn: TurnRow
    before: int | None
    walk: tuple[int, int] | None = None


def find_beginning(view: View, session_id: str, turn_index: int) -> Beginning:
    session, turn = need_session(view, session_id), view.turn(session_id, turn_index)
    if turn is None:
        raise TurnNotFound
    if turn.first_seq is None:  # it never began, or began in the session that this one was forked from
        return Beginning(session, turn, turn_index - 1 if turn.parent is None else turn.parent)
    last = view.turn_before(session_id, turn.first_seq)
    if last is None:
        before = 0 if session.forked_after is None else None
        walk = None if turn.context == FIRST_CONTEXT else (0, turn.first_seq)
        return Beginning(session, turn, before, walk)
    index, seq, context = last
    # Whatever moves files starts a new context, so most often there is nothing to look through.
    return Beginning(session, turn, index, None if context == turn.context else (seq, turn.first_seq))


def find_moved(view: View, session_id: str, after: int, before: int) -> tuple[str | None, int | None]:
    """The last tree of an undo or redo in the next page of events, and where the page after it begins."""
    tree = None
    page = view.events(session_id, after=after, limit=PAGE_EVENTS, max_bytes=PAGE_BYTES)
    for event in page:
        if event.seq >= before:
            return tree, None
        if event.type in MOVES_FILES:
            files = orjson.loads(event.data).get("files")
            tree = str(files["after"]) if isinstance(files, dict) else tree
    return tree, page[-1].seq if page else None


def explain_no_tree(turn: TurnRow) -> str | None:
    """Why there cannot be files after this turn; None when there can."""
    if turn.state is not TurnState.ENDED:
        return "the turn has not ended yet"
    return "the turn never began" if turn.started_at is None else None
