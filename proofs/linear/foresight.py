"""Which answers a session can no longer give: its log only grows, and a turn never goes back."""

from collections.abc import Callable, Mapping
from typing import Any

from proofs.linear.checker import FIRST, Op
from proofs.linear.state import ENDED, PENDING, QUEUED, State

RANKS = {QUEUED: 0, ENDED: 2}


def can_still(state: State, op: Op, stage: tuple[Any, ...]) -> bool:
    """False only if the answer of this operation, which is at this stage, cannot come any more."""
    if op.kind == "run":
        return stage != FIRST or op.answer[0] != "ended" or _can_end(state, op)
    look = LOOKS.get((op.kind, None)) or LOOKS.get((op.kind, op.answer[0] if op.answer else None))
    return look is None or look(state, op)


def _can_accept(state: State, op: Op) -> bool:
    _, at, shown, known, head = op.answer
    if not known:
        return at > len(state.turns) and state.head < int(head)
    if state.head > head:
        return False
    if at > len(state.turns):
        return True
    turn = state.turns[at - 1]
    return turn.key == op.given["key"] and _rank(turn.state) <= _rank(shown)


def _can_end(state: State, op: Op) -> bool:
    _, at, outcome = op.answer
    if at > len(state.turns):
        return True
    turn = state.turns[at - 1]
    return turn.key == op.given["key"] and turn.outcome in (None, outcome)


def _can_move(state: State, op: Op) -> bool:
    return state.head < int(op.answer[-1])


def _can_withdraw(state: State, op: Op) -> bool:
    at = int(op.given["turn"])
    return at > len(state.turns) or state.turns[at - 1].state == QUEUED


def _can_decide(state: State, op: Op) -> bool:
    at = int(op.given["turn"])
    return at > len(state.turns) or state.turns[at - 1].asked in ("", PENDING)


def _can_count(state: State, op: Op) -> bool:
    _, _, begun, _, head = op.answer
    return state.head <= int(head) and sum(turn.started for turn in state.turns) <= int(begun)


def _can_show(state: State, op: Op) -> bool:
    shown = op.answer
    if len(state.turns) > len(shown):
        return False
    return all(
        turn.prompt == prompt and _rank(turn.state) <= _rank(state_) and turn.outcome in (None, outcome)
        for turn, (prompt, state_, outcome, _) in zip(state.turns, shown, strict=False)
    )


def _rank(state: str) -> int:
    return RANKS.get(state, 1)


LOOKS: Mapping[tuple[str, str | None], Callable[[State, Op], bool]] = {
    ("submit", "accepted"): _can_accept,
    ("undo", "cut"): _can_move,
    ("redo", "restored"): _can_move,
    ("withdraw", "cancelled"): _can_withdraw,
    ("decide", "decided"): _can_decide,
    ("session", None): _can_count,
    ("turns", None): _can_show,
}
"""By the kind of an operation and the first word of its answer; None stands for any."""
