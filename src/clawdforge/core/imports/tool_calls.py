"""Converts tool calls in a list of messages, whatever program wrote it, into our own shape.

A call belongs to the message that made it. A tool's row names the call whose result it is, and that call gets
the result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from clawdforge.core.models.rows import MessageRow
from clawdforge.core.rules.projection import shorten
from clawdforge.wire.base import Json
from clawdforge.wire.message import CALL_ID, CALL_INPUT, CALL_OUTPUT, Role

OURS: Final = frozenset({CALL_ID, "title", CALL_INPUT})
INPUTS: Final = ("arguments", "args", "input")


def read_calls(row: Json, role: Role) -> tuple[Json, ...]:
    """The tool calls that a row makes, or the one whose result it is."""
    if role is Role.TOOL and not row.get("tool_calls"):
        return _read_answer(row)
    blocks = [block for block in _dicts(row.get("content")) if block.get("type") == "tool_use"]
    return tuple(_convert_call(call) for call in [*_dicts(row.get("tool_calls")), *blocks])


def join_results(rows: Sequence[MessageRow], failed: Iterable[bool]) -> tuple[MessageRow, ...]:
    """The same rows, with the result added to each call for which there is one."""
    known = [list(row.tool_calls) for row in rows]
    callers: dict[str, tuple[int, int]] = {}
    for at, (row, bad) in enumerate(zip(rows, failed, strict=True)):
        if row.role != Role.TOOL:
            callers |= {call[CALL_ID]: (at, n) for n, call in enumerate(row.tool_calls) if _has_id(call)}
            continue
        for number, answer in enumerate(row.tool_calls):
            position = callers.get(answer[CALL_ID]) if _has_id(answer) else None
            if position is None:
                continue
            call = known[position[0]][position[1]]
            result = {CALL_OUTPUT: shorten(row.content), "status": "failed" if bad else "completed"}
            known[position[0]][position[1]] = {**result, **call}
            known[at][number] = {"title": call.get("title"), **answer}
    return tuple(replace(row, tool_calls=tuple(own)) for row, own in zip(rows, known, strict=True))


def _read_answer(row: Json) -> tuple[Json, ...]:
    call_id = row.get("tool_call_id") or row.get("tool_use_id")
    name = row.get("name") or row.get("tool_name")
    answer = {CALL_ID: _text(call_id), "title": _text(name)}
    known = {key: value for key, value in answer.items() if value}
    return (known,) if known else ()


def _convert_call(call: Json) -> Json:
    """OpenAI writes `function` with its arguments as text; others write `name` and an object."""
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    if OURS & call.keys() or not _text(named.get("name")):
        return call
    given: Any = next((named[key] for key in INPUTS if named.get(key) is not None), {})
    call_id = _text(call.get("id") or call.get("call_id"))
    known = {CALL_ID: call_id} if call_id else {}
    return {**known, "title": named["name"], CALL_INPUT: _parse_arguments(given)}


def _parse_arguments(given: Any) -> Any:
    """The arguments as an object, or unchanged if they are not one."""
    try:
        found = orjson.loads(given) if isinstance(given, str) else given
    except orjson.JSONDecodeError:
        return given
    return found if isinstance(found, dict) else given


def _has_id(call: Json) -> bool:
    return isinstance(call.get(CALL_ID), str)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
