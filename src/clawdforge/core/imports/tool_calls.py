"""Tool calls in a list of messages, whoever wrote it, in the shape that ours have.

A call stands with the message that made it. A row of a tool keeps whose result it is the same way, and the
call gets the result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from clawdforge.core.model import MessageRow
from clawdforge.core.rules.projection import short
from clawdforge.wire.base import Json
from clawdforge.wire.message import CALL_ID, CALL_INPUT, CALL_OUTPUT, Role

OURS: Final = frozenset({CALL_ID, "title", CALL_INPUT})
INPUTS: Final = ("arguments", "args", "input")


def calls(row: Json, role: Role) -> tuple[Json, ...]:
    """What a row says of tools: those that it calls, or the one whose result it is."""
    if role is Role.TOOL and not row.get("tool_calls"):
        return _answered(row)
    blocks = [block for block in _dicts(row.get("content")) if block.get("type") == "tool_use"]
    return tuple(_call(call) for call in [*_dicts(row.get("tool_calls")), *blocks])


def joined(rows: Sequence[MessageRow], failed: Iterable[bool]) -> tuple[MessageRow, ...]:
    """The same rows, where each call that has a row with its result knows the result."""
    known = [list(row.tool_calls) for row in rows]
    callers: dict[str, tuple[int, int]] = {}
    for at, (row, bad) in enumerate(zip(rows, failed, strict=True)):
        if row.role != Role.TOOL:
            callers |= {call[CALL_ID]: (at, n) for n, call in enumerate(row.tool_calls) if _named(call)}
            continue
        for number, answer in enumerate(row.tool_calls):
            place = callers.get(answer[CALL_ID]) if _named(answer) else None
            if place is None:
                continue
            call = known[place[0]][place[1]]
            result = {CALL_OUTPUT: short(row.content), "status": "failed" if bad else "completed"}
            known[place[0]][place[1]] = {**result, **call}
            known[at][number] = {"title": call.get("title"), **answer}
    return tuple(replace(row, tool_calls=tuple(own)) for row, own in zip(rows, known, strict=True))


def _answered(row: Json) -> tuple[Json, ...]:
    call_id = row.get("tool_call_id") or row.get("tool_use_id")
    name = row.get("name") or row.get("tool_name")
    answer = {CALL_ID: _text(call_id), "title": _text(name)}
    known = {key: value for key, value in answer.items() if value}
    return (known,) if known else ()


def _call(call: Json) -> Json:
    """OpenAI has `function` with its arguments as text; others have `name` and an object beside it."""
    function = call.get("function")
    told = function if isinstance(function, dict) else call
    if OURS & call.keys() or not _text(told.get("name")):
        return call
    given: Any = next((told[key] for key in INPUTS if told.get(key) is not None), {})
    call_id = _text(call.get("id") or call.get("call_id"))
    known = {CALL_ID: call_id} if call_id else {}
    return {**known, "title": told["name"], CALL_INPUT: _parsed(given)}


def _parsed(given: Any) -> Any:
    """Arguments as an object; as they came when they are none."""
    try:
        found = orjson.loads(given) if isinstance(given, str) else given
    except orjson.JSONDecodeError:
        return given
    return found if isinstance(found, dict) else given


def _named(call: Json) -> bool:
    return isinstance(call.get(CALL_ID), str)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
