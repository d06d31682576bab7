"""Asks a graph's interrupts as permissions, and turns the decisions into what the graph is resumed with.

There are two kinds: the review of tool calls in LangChain's agents and deepagents (`interrupt_on`), and
everything else, which becomes a question with yes and no, or with the options that it names.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

from clawdforge.graphs.connection import Json

YES: Final = {"optionId": "allow", "name": "Allow", "kind": "allow_once"}
NO: Final = {"optionId": "reject", "name": "Reject", "kind": "reject_once"}

Asking = Callable[[Json, list[Json]], Awaitable[str | None]]


async def ask_interrupt(ask: Asking, value: Any) -> Any:
    """Ask the question. Returns the value with which the graph is resumed."""
    actions = value.get("action_requests") if isinstance(value, dict) else None
    if isinstance(actions, list):
        return {"decisions": [await _review(ask, action) for action in actions if isinstance(action, dict)]}
    given = value.get("options") if isinstance(value, dict) else None
    if isinstance(given, list) and given:
        options = [{"optionId": str(o), "name": str(o), "kind": "allow_once"} for o in given]
        chosen = await ask(_tool_call(_title(value), value), [*options, NO])
        return chosen if chosen in [o["optionId"] for o in options] else False
    return await ask(_tool_call(_title(value), value), [YES, NO]) == YES["optionId"]


async def _review(ask: Asking, action: Json) -> Json:
    name, arguments = str(action.get("name", "tool")), action.get("args", action.get("arguments", {}))
    call = _tool_call(name, arguments)
    if action.get("description"):
        text = {"type": "text", "text": str(action["description"])}
        call["content"] = [{"type": "content", "content": text}]
    if await ask(call, [YES, NO]) == YES["optionId"]:
        return {"type": "approve"}
    return {"type": "reject", "message": f"{name} was not permitted"}


def _tool_call(title: str, arguments: Any) -> Json:
    return {
        "toolCallId": f"ask_{uuid.uuid4().hex[:12]}",
        "title": title,
        "kind": "other",
        "rawInput": arguments,
    }


def _title(value: Any) -> str:
    if isinstance(value, dict):
        for key in ("title", "question", "message", "description"):
            if value.get(key):
                return str(value[key])
    return str(value)
