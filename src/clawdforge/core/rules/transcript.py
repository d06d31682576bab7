"""Tells a conversation to an agent that does not know it: what was said and done, as far as there is room.

The newest messages come whole, with what tools were given and gave. Of older calls only the names are told;
what is older still is left out, and that is said. So is how a turn ended that did not run its course.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import orjson

from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.rules.turns import was_heard
from clawdforge.wire.base import Json
from clawdforge.wire.message import CALL_INPUT, CALL_OUTPUT, Role
from clawdforge.wire.turn import Outcome

MAX_CHARS: Final = 400_000
WORDS_OF_FAILURE: Final = 300
TITLE_CHARS: Final = 200
NAMED_TOOLS: Final = 20
"""So many tools of an older message are named; of the others only the number is told."""
MARKS: Final = {
    Outcome.CANCELLED: "this turn was cancelled here",
    Outcome.INTERRUPTED: "the answer was cut off here",
    Outcome.TIMED_OUT: "the answer was cut off here, because it took too long",
    Outcome.FAILED: "the turn failed here",
}
ENDS: Final = {
    "max_tokens": "the answer ends here, because the model may not say more at once",
    "refusal": "the model refused to go on",
}

FindTurn = Callable[[int], TurnRow | None]


def write_transcript(
    messages: Sequence[MessageRow],
    running: int,
    find_turn: FindTurn,
    only: AbstractSet[int] | None = None,
    room: int = MAX_CHARS,
) -> str:
    """The conversation so far, but for the running turn; with `only`, what belongs to those turns.

    A message that was only posted, with no turn of its own, is not for the agent; nor is a prompt that nobody
    began to answer: whoever sent it knows that it was not heard.
    """
    told: list[str] = []
    details = room // 2
    marked: set[int] = set()
    ours = [one for one in messages if one.turn not in (None, running) and (only is None or one.turn in only)]
    for number, message in enumerate(reversed(ours)):
        turn = find_turn(message.turn) if message.turn else None
        if turn is not None and not was_heard(turn):
            continue
        mark = "" if turn is None or turn.turn_index in marked else _mark(turn)
        marked |= {message.turn or 0}
        text, details = _tell(message, mark, details)
        if len(text) > room and not told:
            text = _leave_out_middle(text, room)
        elif len(text) > room:
            told.append(f"(what came before is left out: {len(ours) - number} messages)")
            break
        room -= len(text)
        told += [text] if text else []
    return "\n\n".join(reversed(told))


def tell_last_words(messages: Sequence[MessageRow], turn: TurnRow, room: int = MAX_CHARS) -> str:
    """What was kept of an answer that was cut off; nothing if there is nothing."""
    answer = next(
        (one for one in messages if (one.turn, one.role) == (turn.turn_index, Role.ASSISTANT)), None
    )
    if answer is None:
        return ""
    text, _ = _tell(answer, "", room // 2)
    return text if len(text) <= room else f"(…)\n{text[-room:]}"


def _tell(message: MessageRow, mark: str, details: int) -> tuple[str, int]:
    """The message in words, and what is left of the characters for what tools were given and gave."""
    parts, details = _tell_tools(message.tool_calls, details)
    if message.plan:
        parts.append(_tell_plan(message.plan))
    if message.content:
        parts.append(f"{message.role.title()}: {message.content}")
    if message.truncated:
        parts.append("(a part of this answer was not kept)")
    return "\n\n".join([*parts, mark] if mark else parts), details


def _tell_tools(calls: Sequence[Json], details: int) -> tuple[list[str], int]:
    """The newest whole, as many as there is room for; the others by their names."""
    told: list[str] = []
    for left in range(len(calls), 0, -1):
        call = _tell_call(calls[left - 1])
        if len(call) > details:
            told.append(_name_tools(calls[:left]))
            break
        details -= len(call)
        told.append(call)
    return told[::-1], details


def _tell_call(call: Json) -> str:
    lines = [f"[Tool: {_name(call)}]"]
    lines += [f"Given: {_write(call[CALL_INPUT])}"] if call.get(CALL_INPUT) is not None else []
    lines += [f"Result: {_write(call[CALL_OUTPUT])}"] if call.get(CALL_OUTPUT) is not None else []
    return "\n".join(lines)


def _name_tools(calls: Sequence[Json]) -> str:
    names = "; ".join(_name(call) for call in calls[-NAMED_TOOLS:])
    more = f"{len(calls) - NAMED_TOOLS} and then " if len(calls) > NAMED_TOOLS else ""
    return f"[Tools, without what they were given and gave: {more}{names}]"


def _name(call: Json) -> str:
    title = " ".join(str(call.get("title") or "without a name")[:TITLE_CHARS].split())
    return ", ".join([title, *(str(call[key])[:TITLE_CHARS] for key in ("kind", "status") if call.get(key))])


def _tell_plan(entries: Sequence[Any]) -> str:
    told = [entry for entry in entries if isinstance(entry, dict)]
    lines = [
        f"- {str(entry.get('content'))[:TITLE_CHARS]} ({str(entry.get('status') or 'pending')[:TITLE_CHARS]})"
        for entry in told[:NAMED_TOOLS]
    ]
    return "\n".join(["[Plan]", *lines])


def _mark(turn: TurnRow) -> str:
    if turn.outcome is Outcome.FAILED:
        words = " ".join((turn.error or "")[:WORDS_OF_FAILURE].split())
        return f"({MARKS[turn.outcome]}: {words})" if words else f"({MARKS[turn.outcome]})"
    mark = MARKS.get(turn.outcome) if turn.outcome else None
    mark = mark or ENDS.get(turn.stop_reason or "")
    return f"({mark})" if mark else ""


def _write(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, RecursionError):
        return "(it cannot be written)"


def _leave_out_middle(text: str, room: int) -> str:
    half = max(0, room // 2 - 50)
    gone = len(text) - 2 * half
    return f"{text[:half]}\n(… {gone} characters are left out …)\n{text[len(text) - half :]}"
