"""What one session promises, as a sequential object: each operation happens at one moment, whole.

Only two take more than one step, as their descriptions say: a prompt that is waited for, and a cancel that
empties the queue first. Turns start, ask and end by themselves, as their scripts say.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from proofs.linear.checker import DONE, FIRST, Op, Stage
from proofs.linear.foresight import can_still
from proofs.linear.reads import READS
from proofs.linear.state import ENDED, EXPIRED, OPTIONS, PENDING, QUEUED, RUNNING, WAITING, State, Turn

Steps: TypeAlias = Iterator[tuple[State, Stage]]


class Session:
    """The model of one session, made with `permission_mode: ask` and `on_interrupt: hold`."""

    def __init__(self) -> None:
        self._deeds: Mapping[str, Callable[[State, Op, tuple[Any, ...]], Steps]] = {
            "submit": _submit,
            "run": _run,
            "cancel": _cancel,
            "withdraw": _withdraw,
            "decide": _decide,
            "undo": _undo,
            "redo": _redo,
            "crash": _crash,
        }

    def begin(self) -> State:
        return State()

    def steps(self, state: State, op: Op, stage: tuple[Any, ...]) -> Steps:
        deed = self._deeds.get(op.kind)
        return _read(state, op) if deed is None else deed(state, op, stage)

    def moves(self, state: State) -> Iterator[State]:
        at = state.active()
        if not at:
            if queue := state.queued():
                begun = state.change(queue[0], state=RUNNING, started=True)
                yield begun._replace(pinned=False, redo=()).log()
            return
        turn = state.turns[at - 1]
        if turn.script == "ask" and not turn.asked:
            yield state.change(at, state=WAITING, asked=PENDING).log()
        elif turn.script == "ask" and turn.asked in OPTIONS:
            yield _end(state, at, "completed", f":permission: {OPTIONS[turn.asked]}")
        elif turn.script in ("echo", "slow"):
            yield _end(state, at, "completed", f":{turn.whole}")
        elif turn.script == "fail":
            yield _end(state, at, "failed")

    def can_still(self, state: State, op: Op, stage: tuple[Any, ...]) -> bool:
        return op.answered is None or can_still(state, op, stage)


def _end(state: State, at: int, outcome: str, answer: str | None = None) -> State:
    turn = state.turns[at - 1]
    asked = EXPIRED if turn.asked == PENDING else turn.asked
    events = 1 + (asked != turn.asked)
    return state.change(at, state=ENDED, outcome=outcome, answer=answer, asked=asked).log(events)


def _tell(op: Op, *answer: Any) -> bool:
    """Whether this can have been the answer."""
    return op.answered is None or op.answer == answer


def _told(state: State, op: Op, *answer: Any) -> State | None:
    """The state after an answer whose last part is the head."""
    if op.answered is None:
        return state
    return state.observe(op.answer[-1]) if op.answer[:-1] == answer else None


def _record(state: State, op: Op) -> tuple[State, int, bool] | str:
    """The state with this prompt, the index of its turn, and whether it was there before; or a refusal."""
    given = op.given
    at = next((at for at, turn in enumerate(state.turns, 1) if turn.key == given["key"]), 0)
    if at and state.turns[at - 1].prompt != given["prompt"]:
        return "key_reused"
    if at:
        return state, at, True
    if given["if_busy"] == "reject" and (state.active() or state.queued()):
        return "session_busy"
    turn = Turn(given["key"], given["prompt"], given["script"], given["whole"])
    return state._replace(turns=(*state.turns, turn)).log(), len(state.turns) + 1, False


def _submit(state: State, op: Op, _stage: tuple[Any, ...]) -> Steps:
    recorded = _record(state, op)
    if isinstance(recorded, str):
        if _tell(op, "refused", recorded):
            yield state, DONE
        return
    after, at, known = recorded
    told = _told(after, op, "accepted", at, after.turns[at - 1].state, known)
    if told is not None:
        yield told, DONE


def _run(state: State, op: Op, stage: tuple[Any, ...]) -> Steps:
    """Record a prompt; then, in a step of its own, answer with how its turn ended."""
    if stage != FIRST:
        turn = state.turns[stage[0] - 1]
        if turn.state == ENDED and _tell(op, "ended", stage[0], turn.outcome):
            yield state, DONE
        return
    recorded = _record(state, op)
    if isinstance(recorded, str):
        if _tell(op, "refused", recorded):
            yield state, DONE
        return
    after, at, _ = recorded
    if op.answered is None:
        yield after, DONE  # nobody waits for the end
    elif op.answer[:2] == ("ended", at):
        yield after, (at,)


def _cancel(state: State, op: Op, stage: tuple[Any, ...]) -> Steps:
    """With `queued` it takes turns out of the queue until there are none; then it ends the one that runs."""
    taken = stage[0] if stage else 0
    if op.given["queued"] and stage[1:] != ("empty",):
        queue = state.queued()
        after = state
        for at in queue:
            after = _end(after, at, "cancelled", "")
        yield after, (taken + len(queue), "taking" if queue else "empty")
        return
    at = state.active()
    if _tell(op, "cancelled", taken + (at > 0)):
        yield _end(state, at, "cancelled") if at else state, DONE


def _withdraw(state: State, op: Op, _stage: tuple[Any, ...]) -> Steps:
    at = op.given["turn"]
    if at > len(state.turns):
        if _tell(op, "refused", "turn_not_found"):
            yield state, DONE
    elif state.turns[at - 1].state != QUEUED:
        if _tell(op, "refused", "turn_not_queued"):
            yield state, DONE
    elif _tell(op, "cancelled", 1):
        yield _end(state, at, "cancelled", ""), DONE


def _decide(state: State, op: Op, _stage: tuple[Any, ...]) -> Steps:
    """The first decision wins; every other is told that it was decided already."""
    at, decision = op.given["turn"], op.given["decision"]
    if at <= len(state.turns) and state.turns[at - 1].asked == PENDING:
        if _tell(op, "decided", decision):
            yield state.change(at, state=RUNNING, asked=decision).log(), DONE
    elif _tell(op, "refused", "already_decided"):
        yield state, DONE


def _undo(state: State, op: Op, _stage: tuple[Any, ...]) -> Steps:
    taken = tuple(state.visible()[-op.given["turns"] :])
    if state.active() or state.queued():
        if _tell(op, "refused", "session_busy"):
            yield state, DONE
    elif not taken:
        if _tell(op, "refused", "nothing_to_undo"):
            yield state, DONE
    else:
        after = _mark(state, taken, cut=True).log()._replace(redo=(*state.redo, taken))
        told = _told(after, op, "cut", taken)
        if told is not None:
            yield told, DONE


def _redo(state: State, op: Op, _stage: tuple[Any, ...]) -> Steps:
    if state.active() or state.queued():
        if _tell(op, "refused", "session_busy"):
            yield state, DONE
    elif not state.redo:
        if _tell(op, "refused", "nothing_to_redo"):
            yield state, DONE
    else:
        taken = state.redo[-1]
        after = _mark(state, taken, cut=False).log()._replace(redo=state.redo[:-1])
        told = _told(after, op, "restored", taken)
        if told is not None:
            yield told, DONE


def _mark(state: State, turns: tuple[int, ...], *, cut: bool) -> State:
    for at in turns:
        state = state.change(at, cut=cut)
    return state


def _crash(state: State, _op: Op, _stage: tuple[Any, ...]) -> Steps:
    """The server died and came back: the turn that ran has ended, and everything else is as it was."""
    at = state.active()
    yield _end(state, at, "interrupted") if at else state, DONE


def _read(state: State, op: Op) -> Steps:
    if op.answered is None:
        return
    seen = READS[op.kind](state, op.answer)
    if seen is not None:
        yield seen, DONE
