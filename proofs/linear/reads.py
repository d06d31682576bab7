"""What a read can have shown of a session: the state after it, or None where it cannot have been so."""

from collections.abc import Callable, Mapping
from typing import Any

from proofs.linear.state import ACTIVE, ENDED, OPTIONS, State


def _see_session(state: State, answer: Any) -> State | None:
    running, queued, begun, messages, head = answer
    if (running or 0, queued) != (state.active(), len(state.queued())):
        return None
    if begun != sum(turn.started for turn in state.turns):
        return None
    visible = [state.turns[at - 1] for at in state.visible()]
    least = len(visible) + sum(bool(turn.answer) for turn in visible)
    unknown = sum(turn.answer is None and turn.state == ENDED for turn in visible)
    return state.observe(head) if least <= messages <= least + unknown else None


def _see_turns(state: State, answer: Any) -> State | None:
    shown = tuple((turn.prompt, turn.state, turn.outcome, turn.cut) for turn in state.turns)
    return state if shown == answer else None


def _see_messages(state: State, answer: Any) -> State | None:
    """What is not known of an answer, since its turn was broken off, is known from here on."""
    said = list(answer)
    last = max((at for at, turn in enumerate(state.turns, 1) if turn.started), default=0)
    for at in state.visible():
        turn = state.turns[at - 1]
        unsure = turn.state in ACTIVE or (turn.outcome == "interrupted" and at == last)
        if said[:1] != [(at, "user", turn.prompt, unsure)]:
            return None
        del said[0]
        answered = bool(said) and said[0][:2] == (at, "assistant")
        shown = f":{said.pop(0)[2]}" if answered else ""
        if turn.state != ENDED:
            if answered:
                return None
        elif turn.answer is None:
            if turn.whole and not f":{turn.whole}".startswith(shown):
                return None
            state = state.change(at, answer=shown)
        elif turn.answer != shown:
            return None
    return None if said else state


def _see_permissions(state: State, answer: Any) -> State | None:
    shown = tuple(
        (at, "decided", turn.asked) if turn.asked in OPTIONS else (at, turn.asked, None)
        for at, turn in enumerate(state.turns, 1)
        if turn.asked
    )
    return state if shown == answer else None


def _see_heard(state: State, answer: Any) -> State | None:
    """How often agents heard each prompt, by their own record, when all has ended."""
    for turn, heard in zip(state.turns, answer, strict=False):
        sure = turn.outcome in ("completed", "failed") or turn.asked != ""
        if not sure <= heard <= turn.started:
            return None
    return state if len(state.turns) == len(answer) else None


READS: Mapping[str, Callable[[State, Any], State | None]] = {
    "session": _see_session,
    "turns": _see_turns,
    "messages": _see_messages,
    "permissions": _see_permissions,
    "heard": _see_heard,
}
