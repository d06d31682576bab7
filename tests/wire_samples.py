"""One sample of every shape on the wire, for the golden files in tests/golden/wire."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import BaseModel

from clawdforge.drivers.acp.updates import read_message
from clawdforge.wire import (
    admin,
    base,
    browser,
    budgets,
    changes,
    deepagent,
    error_body,
    event,
    hermes,
    mcp_server,
    message,
    openai,
    pauses,
    schedules,
    session,
    shares,
    tree,
    turn,
    ui,
    webhooks,
)
from clawdforge.wire.base import Json
from clawdforge.wire.error_body import error_body as body_of
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.event import EventType, encode_body, number
from clawdforge.wire.event_forms import nest

OPENAPI: Final = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"
AT: Final = 1_794_735_000_123_456
SESSION: Final = "7f8a0c3e-6f43-4c77-9f07-0f6d1f0c9f55"
AGENT_SESSION: Final = "agent-1"
MODULES: Final = (
    base,
    error_body,
    event,
    message,
    session,
    shares,
    webhooks,
    schedules,
    turn,
    tree,
    pauses,
    budgets,
    admin,
    browser,
    changes,
    deepagent,
    hermes,
    mcp_server,
    openai,
    ui,
)

UPDATES: Final[dict[str, Json]] = {
    "agent_message_chunk": {"content": {"type": "text", "text": "Hello, wörld"}, "messageId": "m1"},
    "agent_thought_chunk": {"content": {"type": "text", "text": "Let me see."}},
    "user_message_chunk": {"content": {"type": "text", "text": "As I said."}},
    "tool_call": {
        "toolCallId": "t1",
        "title": "Read notes.md",
        "kind": "read",
        "status": "pending",
        "rawInput": {"path": "notes.md"},
    },
    "tool_call_update": {"toolCallId": "t1", "status": "completed", "content": [{"type": "content"}]},
    "plan": {"entries": [{"content": "look", "priority": "high", "status": "pending"}]},
    "plan_update": {"entries": [{"content": "look", "priority": "high", "status": "completed"}]},
    "plan_removed": {"planId": "p1"},
    "current_mode_update": {"currentModeId": "plan"},
    "available_commands_update": {"availableCommands": [{"name": "compact", "description": "shorten"}]},
    "config_option_update": {"configOptions": [{"id": "model", "currentValue": "small"}]},
    "session_info_update": {"title": "Notes"},
    "usage_update": {"used": 53_000, "size": 200_000, "cost": {"amount": 0.045, "currency": "USD"}},
    "notice": {"level": "warning", "message": "the key expires soon"},
    "compaction_update": {"status": "started"},
    "compaction_summary_chunk": {"content": {"type": "text", "text": "So far: notes."}},
    "brand_new_kind": {"anything": [1, 2.5, None]},
}
"""An update of every kind that becomes an event, and one that no version knows."""

MESSAGES: Final[dict[str, Json]] = {
    "response": {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}},
    "response_error": {"jsonrpc": "2.0", "id": 3, "error": {"code": -32000, "message": "no credit"}},
    "other_method": {"jsonrpc": "2.0", "method": "_vendor/ping", "params": {"n": 1}},
    "text_without_text": {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "image"}}},
    },
    "forged_envelope": {
        "jsonrpc": "2.0",
        "method": "session/update",
        "seq": 99,
        "ts": "never",
        "turn": 7,
        "type": "turn.ended",
        "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"text": "x"}}},
    },
}

OWN: Final[dict[EventType, tuple[int | None, Json]]] = {
    EventType.SESSION_CREATED: (
        None,
        {"agent": "demo", "model": None, "cwd": "/work", "title": "", "meta": None},
    ),
    EventType.SESSION_CHANGED: (None, {"changes": {"title": "Notes", "pinned": True}}),
    EventType.SESSION_CLOSED: (None, {"why": "close"}),
    EventType.SESSION_REOPENED: (None, {}),
    EventType.TURN_QUEUED: (1, {"prompt": "Say hello.", "files": [], "if_busy": "queue"}),
    EventType.TURN_CHANGED: (1, {"prompt": "Say hello, twice.", "position": 0}),
    EventType.TURN_STARTED: (1, {"message": 1}),
    EventType.TURN_RETRIED: (
        1,
        {"code": "model_rate_limited", "error": "claude: API Error: 429", "wait_secs": 12.0},
    ),
    EventType.TURN_ENDED: (
        1,
        {
            "outcome": "completed",
            "stop_reason": "end_turn",
            "error": None,
            "code": None,
            "usage": {"input_tokens": 12, "output_tokens": 3},
            "duration_ms": 41,
            "message": 2,
        },
    ),
    EventType.PERMISSION_REQUESTED: (
        1,
        {
            "permission_id": "p1",
            "tool": "Write notes.md",
            "kind": "edit",
            "options": [{"optionId": "a", "name": "Allow", "kind": "allow_once"}],
            "request": {"toolCall": {"toolCallId": "t1"}},
        },
    ),
    EventType.PERMISSION_DECIDED: (
        1,
        {
            "permission_id": "p1",
            "tool": "Write notes.md",
            "decision": "allow_once",
            "by": "app",
            "reason": None,
        },
    ),
    EventType.HISTORY_CUT: (None, {"messages": [3, 4], "turns": [2], "why": "undo", "context": 2}),
    EventType.HISTORY_RESTORED: (None, {"messages": [3, 4], "turns": [2], "cut": 9, "context": 3}),
    EventType.HISTORY_CLEARED: (None, {"messages": 4}),
    EventType.HISTORY_COMPACTED: (None, {"messages": 4, "summary": "So far: notes."}),
    EventType.CONTEXT_STARTED: (None, {"number": 1, "how": "new", "agent": "demo"}),
    EventType.MESSAGE_POSTED: (None, {"message": 5, "role": "user"}),
    EventType.MESSAGE_BROUGHT: (
        0,
        {"row": {"seq": 1, "role": "user", "content": "why?"}},
    ),
    EventType.TURN_BROUGHT: (1, {"row": {"turn_index": 1, "state": "ended", "prompt": "why?"}}),
    EventType.BUDGET_WARNED: (
        1,
        {
            "budget_id": "7f3c1a52-8f5d-4c1e-9b0a-2d6e4f8a1b3c",
            "scope": "app",
            "id": None,
            "period": "day",
            "warn_at": 0.8,
            "max_tokens": None,
            "max_cost_usd": 5.0,
            "tokens": 81_000,
            "cost_usd": 4.05,
        },
    ),
    EventType.OUTPUT_TRUNCATED: (1, {"dropped_bytes": 209_715_200, "reason": "a line was too long"}),
}


def update(kind: str, fields: Json) -> Json:
    """A `session/update` as an agent sends it."""
    params = {"sessionId": AGENT_SESSION, "update": {"sessionUpdate": kind, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def received() -> Iterator[tuple[str, Json]]:
    """Name and message of everything an agent sends in the samples."""
    for kind, fields in UPDATES.items():
        yield f"update.{kind}", update(kind, fields)
    yield from MESSAGES.items()


def as_compact(sent: Json) -> Json:
    """The event that is stored for an agent's message."""
    kind, fields = read_message(sent)
    found: Json = orjson.loads(number(5, encode_body(kind.value, 1, AT, fields)))
    return found


def as_event(sent: Json) -> Json:
    """What a reader gets who did not ask for the compact form."""
    return nest(as_compact(sent))


def own_event(kind: EventType) -> Json:
    at_turn, fields = OWN[kind]
    found: Json = orjson.loads(number(5, encode_body(kind.value, at_turn, AT, fields)))
    return found


def models() -> list[type[BaseModel]]:
    """Every model that a module of wire defines, in the order of the source."""
    found: list[type[BaseModel]] = []
    for module in MODULES:
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, BaseModel) and kind.__module__ == module.__name__:
                found.append(kind)
    return found


def all_shapes() -> dict[str, Any]:
    """Name of a golden file → what it must hold."""
    shapes: dict[str, Any] = {}
    for name, sent in received():
        shapes[f"event.agent.{name}"] = {"received": sent, "event": as_event(sent)}
        shapes[f"event.compact.{name}"] = {"received": sent, "event": as_compact(sent)}
    for kind in OWN:
        shapes[f"event.own.{kind.value}"] = own_event(kind)
    shapes["errors"] = [body_of(code, "words for people") for code in ErrorCode]
    shapes["error.extra"] = body_of(ErrorCode.SESSION_BUSY, "a turn is running", {"active_turn": 3})
    for kind_of in unpublished():
        module = kind_of.__module__.rsplit(".", 1)[1]
        shapes[f"schema.{module}.{kind_of.__name__}"] = kind_of.model_json_schema()
    return shapes


def unpublished() -> list[type[BaseModel]]:
    """Models whose schema is not in the committed description of the routes, which pins the others."""
    published = orjson.loads(OPENAPI.read_bytes())["components"]["schemas"]
    return [kind for kind in models() if kind.__name__ not in published]
