"""What may be changed about a turn while it waits in the queue: its prompt, its files, its place."""

from dataclasses import replace
from typing import Any

from clawdforge.core.models.events import draft
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import Tx
from clawdforge.core.rules.budgets import NOTHING
from clawdforge.core.rules.purses import find_token, reserve_for_turn, settle
from clawdforge.core.rules.queue import move_turn, order_queue
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.turns import need_session
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import Conflict, TurnNotFound, TurnNotQueued, UnknownFile
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import ChangeTurn, TurnState


def change_queued(
    tx: Tx,
    session_id: str,
    turn_index: int,
    request: ChangeTurn,
    at: Micros,
    quotas: Quotas = NO_QUOTAS,
    by: Principal | None = None,
) -> tuple[TurnRow, int]:
    """Change a queued turn; the turn and its place. Nothing is changed once it has begun.

    A turn begins in a transaction too, so it runs either with all of this or with nothing of it. Whoever
    writes another prompt pays for it: what the turn may cost is held of that caller's budget from then on.
    """
    session = need_session(tx, session_id)
    turn = tx.turn(session_id, turn_index)
    if turn is None:
        raise TurnNotFound
    if turn.state is not TurnState.QUEUED:
        done = "has ended" if turn.state is TurnState.ENDED else "runs already"
        raise TurnNotQueued(f"this turn {done}, so it stays as it is; send another prompt")
    if request.expected_prompt is not None and request.expected_prompt != turn.prompt:
        raise Conflict("somebody else has changed this prompt; read it again", prompt=turn.prompt)
    changed = _change_words(tx, turn, request, quotas)
    if changed:
        _change_payer(tx, session, turn, find_token(tx, by), at)
    changed |= _change_place(tx, session_id, turn_index, request.position)
    if changed:
        tx.append(session_id, [draft(EventType.TURN_CHANGED, turn_index, at, changed)])
    order = order_queue(tx, need_session(tx, session_id))
    return tx.turn(session_id, turn_index) or turn, order.index(turn_index)


def _change_words(tx: Tx, turn: TurnRow, request: ChangeTurn, quotas: Quotas) -> Json:
    changes: dict[str, Any] = {}
    if request.prompt is not None and request.prompt != turn.prompt:
        changes["prompt"] = request.prompt
    if request.files is not None and tuple(request.files) != turn.files:
        if any(tx.file(token) is None for token in request.files):
            raise UnknownFile
        changes["files"] = tuple(request.files)
    if not changes:
        return {}
    if len(request.prompt or "") > len(turn.prompt):
        quotas.check_room(tx)
    tx.change_turn(turn.session_id, turn.turn_index, **changes)
    return {name: list(value) if name == "files" else value for name, value in changes.items()}


def _change_payer(tx: Tx, session: SessionRow, turn: TurnRow, token_id: str | None, at: Micros) -> None:
    if token_id == turn.token_id:
        return
    settle(tx, turn.session_id, turn.turn_index, NOTHING, at)
    tx.change_turn(turn.session_id, turn.turn_index, token_id=token_id)
    reserve_for_turn(tx, session, replace(turn, token_id=token_id), at)


def _change_place(tx: Tx, session_id: str, turn_index: int, position: int | None) -> Json:
    """Put it in its place among those that wait now."""
    if position is None:
        return {}
    order = order_queue(tx, need_session(tx, session_id))
    wanted = move_turn(order, turn_index, position)
    if wanted == order:
        return {}
    tx.change_session(session_id, queue_order=tuple(wanted))
    return {"position": wanted.index(turn_index)}
