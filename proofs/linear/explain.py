"""Finds what is wrong in a history that is not linearizable, makes it smaller, and tells it in words."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from proofs.linear.checker import NEVER, Checker, Op, Undecided
from proofs.linear.model import Session
from proofs.linear.reads import READS
from proofs.linear.state import State

STATES = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer that no order explains, the history up to it, and what the session could be like before."""

    op: Op
    ops: Sequence[Op]
    before: Sequence[State]


def find_fault(ops: Iterable[Op]) -> Fault | None:
    """The first answer that no order explains, in a history with as few reads and refusals as show it."""
    given = sorted(ops, key=lambda op: op.invoked)
    return None if holds(given) else _locate(_leave_out(_locate(given).ops))


def holds(ops: Sequence[Op]) -> bool:
    return Checker(Session(), ops).holds()


def _locate(ops: Sequence[Op]) -> Fault:
    """What is wrong up to some moment is wrong up to every later one, so the first is found by halving."""
    ends = sorted(op.end for op in ops if op.is_sure)
    at = bisect_left(ends, True, key=lambda end: not _holds_surely(_cut_short(ops, end)))
    end = ends[min(at, len(ends) - 1)]
    op = next(op for op in ops if op.is_sure and op.end == end)
    before = Checker(Session(), _cut_short(ops, end - 1))
    return Fault(op, _cut_short(ops, end), before.states if before.holds() else ())


def _leave_out(ops: Sequence[Op]) -> list[Op]:
    """Leave out what changes nothing: if there is no order for the rest, there is none for the whole."""
    small = list(ops)
    piece = max(1, len(small) // 2)
    while piece:
        at = 0
        while at < len(small):
            fewer = [op for n, op in enumerate(small) if not (at <= n < at + piece and _is_idle(op))]
            if len(fewer) < len(small) and not _holds_surely(fewer):
                small = fewer
            else:
                at += piece
        piece //= 2
    return small


def _holds_surely(ops: Sequence[Op]) -> bool:
    """Of what cannot be decided nothing is claimed."""
    try:
        return holds(ops)
    except Undecided:
        return True


def describe(session: str, fault: Fault) -> str:
    """The history, one line each, in the order in which it was asked."""
    lines = [f"session {session}: no order explains the answer of {_name(fault.op)}, in {len(fault.ops)}:"]
    for op in fault.ops:
        span = f"{op.invoked} to {'' if op.end == NEVER else op.end}"
        mark = "  <-- here" if op.number == fault.op.number else ""
        lines.append(f"    {span:>15}  {_name(op)} → {_answer(op)}{mark}")
    lines.append("    just before that answer the session could be:")
    lines += [f"      {describe_state(state)}" for state in fault.before[:STATES]]
    if len(fault.before) > STATES:
        lines.append(f"      or one of {len(fault.before) - STATES} others")
    return "\n".join(lines)


def describe_state(state: State) -> str:
    turns = (
        f"{at} {turn.outcome or turn.state}{' (cut)' if turn.cut else ''}"
        f"{f' ({turn.script}, {turn.asked})' if turn.asked else f' ({turn.script})'}"
        for at, turn in enumerate(state.turns, 1)
    )
    return f"head {'' if state.pinned else 'at least '}{state.head}; turns: {', '.join(turns) or 'none'}"


def _cut_short(ops: Sequence[Op], end: int) -> list[Op]:
    """What was known at this moment; what was not answered yet may happen later or not."""
    return [op if op.end <= end or not op.is_sure else _forget(op) for op in ops if op.invoked <= end]


def _forget(op: Op) -> Op:
    return replace(op, answered=None, answer=None, until=NEVER, must=False)


def _is_idle(op: Op) -> bool:
    """Whether it changed nothing, whatever the order was."""
    refused = op.answered is not None and op.answer[:1] == ("refused",)
    return op.kind in READS or refused or (op.answered is not None and op.answer == ("cancelled", 0))


def _name(op: Op) -> str:
    given = (f"{name}={value!r}" for name, value in op.given.items() if name not in ("whole", "script"))
    return f"{op.client} {op.kind}({', '.join(given)})"


def _answer(op: Op) -> str:
    if op.must:
        return "is back"
    if op.answered is None:
        return "no answer"
    return " ".join(map(str, op.answer)) or "nothing"
