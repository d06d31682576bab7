"""What may happen to a turn, as plain functions over a transaction: submit, start, finish, withdraw.

They are the only writers of turns. Whatever they change and the event that tells of it are one
transaction, so that a crash between any two lines leaves either all of it or nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clawdforge.core.models.events import Draft, draft
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.records import Maker
from clawdforge.core.rules.activity import when_ended, when_queued
from clawdforge.core.rules.admission import Room, admit_turn, estimate_room
from clawdforge.core.rules.budgets import NOTHING, UNREACHED, Spending, read_spending
from clawdforge.core.rules.fingerprints import fingerprint
from clawdforge.core.rules.leases import runs_elsewhere
from clawdforge.core.rules.pauses import find_pause
from clawdforge.core.rules.purses import Question, find_question, find_token, reserve_for_turn, settle_turn
from clawdforge.core.rules.queue import find_next, leave_queue
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.traces import find_callers_trace
from clawdforge.core.rules.usage import MAX_COUNT, bound_usage, estimate_usage, sum_usage
from clawdforge.core.rules.usage_days import count_turn
from clawdforge.core.rules.webhooks import tell_ended
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import (
    HeadMoved,
    KeyReused,
    LimitExceeded,
    SessionBusy,
    SessionClosed,
    SessionNotFound,
    TurnNotFound,
    TurnNotQueued,
    UnknownFile,
)
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role, estimate_tokens
from clawdforge.wire.session import Activity
from clawdforge.wire.turn import MOVES, IfBusy, Outcome, TurnRequest, TurnState

TITLE_CHARS = 50
LOOKED_AT = 20 * TITLE_CHARS
"""A prompt may have millions of words."""

WITHDRAWN_AT_ONCE = 20
UNHEARD = "heard"
"""Among what is kept of a failure, it is false where nobody has begun to answer the prompt."""
TOLD_OF_FAILURES = (UNHEARD, "retry_after")
MAX_QUEUED = 1000
TURNS: Final = Maker(TurnRow)


@dataclass(frozen=True, slots=True)
class SubmittedTurn:
    """A prompt that is on stable storage. `active` is the turn that ran when it came."""

    turn: TurnRow
    head: int
    replayed: bool = False
    active: int | None = None
    is_alone: bool = False  # nothing ran or waited when it came
    room: Room | None = None


@dataclass(frozen=True, slots=True)
class StartedTurn:
    """A turn that is ours to run, under this fence."""

    session: SessionRow
    turn: TurnRow
    fence: int
    is_bounded: bool = False  # by a budget: it holds something of one
    question: Question | None = None  # to be answered by a person before it runs
    room: Room | None = None  # where it is known without a look


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a turn ended."""

    outcome: Outcome
    stop_reason: str | None = None
    error: str | None = None
    code: str | None = None
    error_extra: Json | None = None
    usage: Json | None = None
    stopped_by: str | None = None
    reached_agent: bool = True  # the prompt was given to the agent, as far as is known


def need_session(view: View, session_id: str, expected_head: int | None = None) -> SessionRow:
    session = view.session(session_id)
    if session is None:
        raise SessionNotFound
    if expected_head is not None and expected_head != session.head:
        raise HeadMoved(head=session.head)
    return session


def need_open(view: View, session_id: str, expected_head: int | None = None) -> SessionRow:
    session = need_session(view, session_id)
    if session.closed_at is not None:
        raise SessionClosed
    if expected_head is not None:
        need_session(view, session_id, expected_head)
    return session


def submit(
    tx: Tx,
    session_id: str,
    request: TurnRequest,
    key: str | None,
    at: Micros,
    by: Principal | None = None,
    quotas: Quotas = NO_QUOTAS,
    digest: str | None = None,
) -> SubmittedTurn:
    """Record a prompt. The same key with the same body finds the turn that it made before.

    `digest` is the fingerprint of a long one, which was computed before.
    """
    session = need_session(tx, session_id)
    digest = digest or fingerprint(request)
    prior = tx.turn_by_key(session_id, key) if key is not None else None
    if prior is not None:
        if prior.fingerprint != digest:
            raise KeyReused
        return SubmittedTurn(prior, session.head, replayed=True)
    need_open(tx, session_id, request.expected_head)
    if any(tx.file(token) is None for token in request.files or ()):
        raise UnknownFile
    room = estimate_room(admit_turn(tx, session, quotas), request.prompt)
    active, queued = tx.active_turn(session_id), tx.count_queued(session_id)
    if queued >= MAX_QUEUED:
        raise LimitExceeded(
            f"{queued} turns wait in this session already; wait until some have run, or take them out",
            retry_after=1,
        )
    busy = active is not None or queued > 0
    if busy and request.if_busy is IfBusy.REJECT:
        raise SessionBusy(active_turn=active.turn_index if active else None)
    turn = queue_turn(
        tx,
        session,
        TurnRow(
            session_id=session_id,
            turn_index=0,
            state=TurnState.QUEUED,
            prompt=request.prompt,
            files=tuple(request.files or ()),
            queued_at=at,
            key=key,
            fingerprint=digest,
            timeout_secs=request.timeout_secs,
            limits=request.limits(),
            if_busy=_choose_policy(request.if_busy, busy=busy),
            token_id=find_token(tx, by),
            traceparent=find_callers_trace(tx, by),
        ),
        at,
    )
    head = tx.head(session_id)
    running = active.turn_index if active else None
    return SubmittedTurn(turn, head, active=running, is_alone=not busy, room=room)


def queue_turn(tx: Tx, session: SessionRow, row: TurnRow, at: Micros) -> TurnRow:
    """Give a turn the next index and put it at the end of the queue, with what it holds of budgets.

    Every turn that an agent is to be given comes into being here.
    """
    turn = TURNS.change(row, turn_index=session.last_turn + 1, context=session.context)
    reserve_for_turn(tx, session, turn, at)
    tx.add_turn(turn)
    tx.change_session(session.session_id, last_turn=turn.turn_index, activity=when_queued(session))
    fields: Json = {"prompt": turn.prompt, "files": list(turn.files), "if_busy": turn.if_busy.value}
    if turn.limits:
        fields["limits"] = turn.limits
    if turn.retry_of is not None:
        fields |= {"retry_of": turn.retry_of, "automatic": turn.automatic}
    tx.append(session.session_id, [draft(EventType.TURN_QUEUED, turn.turn_index, at, fields)])
    return turn


def start_next(
    tx: Tx, session_id: str, node: str, at: Micros, only: TurnRow | None = None, *, is_left: bool = False
) -> StartedTurn | None:
    """Begin the next queued turn (`only`, if it is known), unless one runs: its prompt becomes a message."""
    session = tx.session(session_id)
    if session is None or session.closed_at is not None or (only is None and tx.active_turn(session_id)):
        return None
    turn = only or find_next(tx, session)
    if turn is None or find_pause(tx, session.agent) or runs_elsewhere(tx, session, node, is_left=is_left):
        return None
    fence = tx.claim(session_id, node)
    confirm_prompt(tx, session_id)
    tokens = estimate_tokens(turn.prompt)
    parent = tx.last_spoken_turn(session_id)
    seq = tx.add_message(
        MessageRow(
            session_id=session_id,
            role=Role.USER,
            content=turn.prompt,
            ts=at,
            turn=turn.turn_index,
            token_count=tokens,
            pending=True,
        )
    )
    first = tx.append(session_id, [draft(EventType.TURN_STARTED, turn.turn_index, at, {"message": seq})])
    changes: Json = {"state": TurnState.RUNNING, "started_at": at, "first_seq": first, "parent": parent}
    changes["context"] = session.context
    tx.change_turn(session_id, turn.turn_index, **changes)
    tx.change_session(
        session_id,
        turn_count=session.turn_count + 1,
        activity=Activity.RUNNING,
        last_turn_at=at,
        title=session.title or make_title(turn.prompt),
        redo=(),
        queue_order=leave_queue(session, turn.turn_index),
        total_input_tokens=min(MAX_COUNT, session.total_input_tokens + tokens),
    )
    tx.audit(session_id, "turn", at, {"turn": turn.turn_index})
    return _started(tx, session_id, TURNS.change(turn, **changes), fence)


def find_started(tx: Tx, session_id: str, node: str) -> StartedTurn | None:
    """A turn that this node started in a commit whose outcome is unknown; no agent has seen it yet."""
    session, turn = tx.session(session_id), tx.active_turn(session_id)
    if session is None or turn is None or session.holder != node:
        return None
    return _started(tx, session_id, turn, tx.claim(session_id, node))


def _started(tx: Tx, session_id: str, turn: TurnRow, fence: int) -> StartedTurn:
    bounded = bool(tx.reservations(session_id, turn.turn_index))
    question = find_question(tx, session_id, turn.turn_index) if bounded else None
    return StartedTurn(need_session(tx, session_id), turn, fence, bounded, question)


def finish(
    tx: Tx,
    session_id: str,
    turn_index: int,
    ending: Ending,
    at: Micros,
    *,
    drafts: Sequence[Draft] = (),
    message: MessageRow | None = None,
    fence: int | None = None,
) -> TurnRow:
    """The one way a turn ends, with its one terminal event. Ending an ended turn changes nothing.

    The prompt of a turn that was cut off stays marked pending until the next turn begins. A turn that never
    began has no message: what is marked then is the prompt of another turn, which runs or was cut off.
    """
    session, turn = tx.session(session_id), tx.turn(session_id, turn_index)
    if session is None or turn is None:
        raise TurnNotFound
    if TurnState.ENDED not in MOVES[turn.state]:
        return turn
    if drafts:
        tx.append(session_id, drafts, fence=fence)
    expire_permissions(tx, session_id, turn_index, ending.error or "the turn ended", at)
    if turn.started_at is not None and ending.outcome is not Outcome.INTERRUPTED:
        confirm_prompt(tx, session_id)
    seq = tx.add_message(message) if message is not None else None
    started = turn.started_at
    extra = dict(ending.error_extra or {})
    if started is not None and not ending.reached_agent and ending.outcome is not Outcome.INTERRUPTED:
        extra[UNHEARD] = False
    reported = bound_usage(ending.usage)
    usage = reported or estimate_usage(turn, message)
    fields: Json = {
        "outcome": ending.outcome.value,
        "stop_reason": ending.stop_reason,
        "error": ending.error,
        "code": ending.code,
        "usage": usage,
        "duration_ms": max(0, at - started) // 1000 if started else 0,
        "message": seq,
    }
    if ending.stopped_by is not None:
        fields["stopped_by"] = ending.stopped_by
    fields |= {name: extra[name] for name in TOLD_OF_FAILURES if name in extra}
    warnings = settle_turn(tx, turn, _find_spending(turn, ending, usage), at)
    ended = draft(EventType.TURN_ENDED, turn_index, at, fields)
    last = tx.append(session_id, [*warnings, ended], fence=fence)
    tell_ended(tx, turn, last, fields, at)
    changes: Json = {
        "state": TurnState.ENDED,
        "outcome": ending.outcome,
        "stop_reason": ending.stop_reason,
        "error": ending.error,
        "code": ending.code,
        "error_extra": extra,
        "usage": usage,
        "stopped_by": ending.stopped_by,
        "ended_at": at,
        "last_seq": last,
    }
    tx.change_turn(session_id, turn_index, **changes)
    if started is not None:
        tx.add_usage(count_turn(session, reported, usage, at))
        used = sum_usage(session, reported, message)
        activity = when_ended(tx, session_id, ending.outcome)
        tx.change_session(session_id, last_turn_at=at, activity=activity, last_outcome=ending.outcome, **used)
    elif session.activity is Activity.QUEUED:
        tx.change_session(session_id, activity=when_ended(tx, session_id, session.last_outcome))
    return TURNS.change(turn, **changes)


def _find_spending(turn: TurnRow, ending: Ending, usage: Json | None) -> Spending:
    """What counts against budgets: nothing if no agent was given the prompt."""
    unheard = turn.started_at is None or not ending.reached_agent or ending.code in UNREACHED
    unheard = unheard or (ending.error_extra or {}).get(UNHEARD) is False
    if unheard and not ending.usage:
        return NOTHING
    if usage is None:
        return Spending(tokens=estimate_tokens(turn.prompt), tokens_estimated=True)
    return read_spending(usage)


def withdraw(tx: Tx, session_id: str, turn_index: int, at: Micros) -> TurnRow:
    """Take a turn out of the queue."""
    need_session(tx, session_id)
    turn = tx.turn(session_id, turn_index)
    if turn is None:
        raise TurnNotFound
    if turn.state is not TurnState.QUEUED:
        raise TurnNotQueued
    return finish(tx, session_id, turn_index, Ending(outcome=Outcome.CANCELLED, stop_reason="cancelled"), at)


def withdraw_some(tx: Tx, session_id: str, at: Micros, limit: int = WITHDRAWN_AT_ONCE) -> int:
    """Take turns out of the queue, as many as one transaction should; how many they were."""
    need_session(tx, session_id)
    queued = tx.queued_turns(session_id, limit)
    for turn in queued:
        withdraw(tx, session_id, turn.turn_index, at)
    return len(queued)


def find_last_prompt(view: View, session_id: str) -> MessageRow | None:
    """The newest visible message that a turn began with; what was only posted is none."""
    last = view.last_message(session_id, Role.USER)
    while last is not None and last.turn is None:
        last = view.last_message(session_id, Role.USER, before=last.seq)
    return last


def confirm_prompt(tx: Tx, session_id: str) -> None:
    """A prompt that was marked pending becomes an ordinary message, whatever was posted after it."""
    seq = tx.pending_prompt(session_id)
    if seq is not None:
        tx.change_messages(session_id, [seq], pending=False)


def expire_permissions(tx: Tx, session_id: str, turn_index: int, reason: str, at: Micros) -> None:
    """Expire the turn's open permission requests, because the turn has ended."""
    for row in tx.permissions(session_id, state="pending"):
        if row.turn_index == turn_index:
            pid = row.permission_id
            tx.change_permission(session_id, pid, state="expired", reason=reason, decided_at=at)
            fields = {"permission_id": pid, "decision": "expired", "by": "server", "reason": reason}
            tx.append(session_id, [draft(EventType.PERMISSION_DECIDED, turn_index, at, fields)])


def was_heard(turn: TurnRow) -> bool:
    """Whether somebody has begun to answer the prompt, as far as is known."""
    return turn.error_extra.get(UNHEARD) is not False


def make_title(prompt: str) -> str:
    return " ".join(prompt.lstrip()[:LOOKED_AT].split())[:TITLE_CHARS]


def _choose_policy(wanted: IfBusy, *, busy: bool) -> IfBusy:
    """The policy that is applied. No driver can give a prompt to a busy agent, so `steer` becomes `queue`."""
    return IfBusy.QUEUE if not busy or wanted is IfBusy.STEER else wanted
