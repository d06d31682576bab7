"""The two forms of an agent's event: compact, as it is stored, and nested, as the first callers know it.

The compact form holds each text once: the words of a chunk in `content`, the name and the input of a tool
call in `name` and `args`, what is left of the agent's update in `update`. The nested form is the agent's
JSON-RPC message, with the keys of its update copied flat. Each is made from the other without a loss.

What every agent sends in the same way is not stored: the envelope of an update, and the shape of an update
that is nothing but words. Where a message differs, `message` holds its envelope and `update` the rest of it.
"""

from collections.abc import Container
from enum import StrEnum
from typing import Any, Final, TypeGuard

import orjson

from clawdforge.wire.base import Json
from clawdforge.wire.event import RESERVED, EventType
from clawdforge.wire.json_bounds import write_briefly

WORD: Final = "sessionUpdate"
MAX_NAME_CHARS: Final = 4000
SPOKEN: Final[dict[str, str]] = {
    EventType.TEXT: "agent_message_chunk",
    EventType.THINKING: "agent_thought_chunk",
    EventType.USER: "user_message_chunk",
}
"""The types whose events are words, and the agent's word for each."""

SPEAKING: Final = {word: EventType(kind) for kind, word in SPOKEN.items()}
LIFTED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(SPOKEN, ("content",)),
    EventType.TOOL_CALL: ("name", "args"),
}
"""What stands at the top in both forms."""

ENVELOPE: Final[Json] = {"jsonrpc": "2.0", "method": "session/update"}
PLAIN_KEYS: Final = RESERVED | {"agent_session_id", "content"}
"""Those of an event that is nothing but words, as nearly all are."""

ANSWER: Final[Json] = {"jsonrpc": "2.0"}
ANSWER_KEYS: Final = ("id", "result", "error")


class Form(StrEnum):
    """How an agent's events are given: `compact`, each text once, or `nested`, with its whole message."""

    NESTED = "nested"
    COMPACT = "compact"


def is_from_agent(kind: str) -> bool:
    """Whether events of this type stand for a message of the agent; the server's own have one form only."""
    return "." not in kind


def compact_fields(kind: str, message: Json) -> Json:
    """The keys of a compact event, from the agent's message and the type that its driver gave it."""
    if kind == EventType.RESPONSE:
        return _compact_answer(message)
    params = message.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(update, dict):
        return {"message": _without(message, RESERVED)}
    fields = _compact_envelope(message, params)
    if kind in SPOKEN:
        _add_words(fields, update)
    elif kind == EventType.TOOL_CALL:
        _add_tool_call(fields, update)
    else:
        fields["update"] = update
    return fields


def plain_words(message: Json) -> tuple[EventType, Json, str] | None:
    """The type, the other keys of the compact event, and the words; None if it is not just that.

    Nearly all messages are. One that may tell what it has cost is not.
    """
    try:
        params = message["params"]
        update = params["update"]
        block = update["content"]
        session_id = params["sessionId"]
        if len(message) != 3 or len(params) != 2 or not _is_plain(block) or "_meta" in update:
            return None
        if message["method"] != "session/update" or message["jsonrpc"] != "2.0":
            return None
        fields = {"agent_session_id": session_id}
        if len(update) > 2:
            fields["update"] = _without(update, (WORD, "content"))
        return (SPEAKING[update[WORD]], fields, block["text"]) if isinstance(session_id, str) else None
    except (KeyError, TypeError):
        return None


def update_of(kind: str, event: Json) -> Json:
    """What the agent's update says, from the keys of an event in either form; empty where it says nothing."""
    update = event.get("update")
    if update is None:
        update = event.get("params")
    elif kind == EventType.TOOL_CALL and isinstance(update, dict):
        return _rebuild_tool_call(event, update)
    return update if isinstance(update, dict) else {}


def nest(event: Json) -> Json:
    """The nested form of a compact event."""
    kind = str(event.get("type"))
    if not is_from_agent(kind):
        return event
    if kind in SPOKEN and len(event) == len(PLAIN_KEYS) and "agent_session_id" in event:
        return _nest_words(kind, event)
    head = _only(event, RESERVED)
    if kind == EventType.RESPONSE:
        return {**head, **event.get("message", ANSWER), **_only(event, ANSWER_KEYS)}
    if kind not in SPOKEN and "update" not in event:
        return {**head, **event.get("message", {})}
    update = _rebuild_update(kind, event)
    message = event.get("message")
    if message is None:
        message = {**ENVELOPE, "params": {"sessionId": event.get("agent_session_id")}}
    params = {**update, **message["params"], "update": update}
    return {**head, **message, "params": params, **_only(event, LIFTED.get(kind, ()))}


def unnest(event: Json) -> Json:
    """The compact form of an event that was stored nested."""
    kind = str(event.get("type"))
    if not is_from_agent(kind):
        return event
    message = _without(event, RESERVED)
    params = message.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    is_copied = kind != EventType.RESPONSE  # whatever stands in a response was put there by the agent
    if is_copied and isinstance(params, dict) and isinstance(update, dict):
        copied = {key for key in update if key != "update" and is_same(update[key], params.get(key))}
        message = {**_without(message, LIFTED.get(kind, ())), "params": _without(params, copied)}
    return {**_only(event, RESERVED), **compact_fields(kind, message)}


def _nest_words(kind: str, event: Json) -> Json:
    """Written out in full for speed, since nearly every event is of this kind."""
    session_id, text = event["agent_session_id"], event["content"]
    update = {WORD: SPOKEN[kind], "content": {"type": "text", "text": text}}
    return {
        "seq": event["seq"],
        "ts": event["ts"],
        "turn": event["turn"],
        "type": kind,
        **ENVELOPE,
        "params": {**update, "sessionId": session_id, "update": update},
        "content": text,
    }


def _compact_answer(message: Json) -> Json:
    known = _only(message, ANSWER_KEYS)
    rest = _without(message, {*RESERVED, *ANSWER_KEYS})
    return known if rest == ANSWER else {"message": rest, **known}


def _compact_envelope(message: Json, params: Json) -> Json:
    """Whose session it is, where the envelope says no more than that; else the envelope itself."""
    session_id = params.get("sessionId")
    usual = message.get("method") == "session/update" and message.get("jsonrpc") == "2.0"
    if usual and len(message) == 3 and len(params) == 2 and isinstance(session_id, str):
        return {"agent_session_id": session_id}
    return {"message": {**_without(message, RESERVED), "params": _without(params, ("update",))}}


def _add_words(fields: Json, update: Json) -> None:
    """`content` comes last, so that the words of many events can be read without decoding the rest."""
    block: Any = update.get("content")
    if _is_plain(block):
        text: str = block["text"]
        if len(update) > 2:
            fields["update"] = _without(update, (WORD, "content"))
    elif "content" in update:
        text = _text_of(block)
        rest = _without(block, ("text",)) if text else block
        fields["update"] = {**_without(update, (WORD,)), "content": rest}
    else:
        text = ""
        fields["update"] = update
    fields["content"] = text


def _add_tool_call(fields: Json, update: Json) -> None:
    title, given = update.get("title"), update.get("rawInput")
    spare = _name_without_title(update)
    lifted = {"title"} if isinstance(title, str) and title and title != spare else set()
    lifted |= {"rawInput"} if given else set()
    fields |= {"name": _as_name(title or spare), "args": given or {}, "update": _without(update, lifted)}


def _rebuild_update(kind: str, event: Json) -> Json:
    update: Json = event.get("update", {})
    if kind == EventType.TOOL_CALL:
        return _rebuild_tool_call(event, update)
    if kind not in SPOKEN or WORD in update:
        return update
    block, text = update.get("content", {"type": "text"}), event.get("content")
    if isinstance(block, dict) and "text" not in block and (text or "content" not in update):
        block = {**block, "text": text}
    return {WORD: SPOKEN[kind], "content": block, **_without(update, ("content",))}


def _rebuild_tool_call(event: Json, update: Json) -> Json:
    """With its title and its input in the places where the agent had put them."""
    name, args = event.get("name"), event.get("args")
    whole = _only(update, (WORD, "toolCallId"))
    if "title" not in update and name != _name_without_title(update):
        whole["title"] = name
    whole |= update
    if "rawInput" not in update and args:
        whole["rawInput"] = args
    return whole


def _name_without_title(update: Json) -> str:
    return _as_name(update.get("kind") or update.get("toolCallId") or "tool")


def _as_name(value: Any) -> str:
    """A name as it is; what an agent puts in its place is written out only if that is short."""
    return value if isinstance(value, str) else write_briefly(value, MAX_NAME_CHARS)


def _text_of(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""


def _is_plain(block: Any) -> TypeGuard[Json]:
    """Whether it is words and nothing else."""
    if not isinstance(block, dict) or len(block) != 2:
        return False
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def is_same(one: Any, other: Any) -> bool:
    """Equal as JSON, where 1, 1.0 and true differ."""
    return one == other and orjson.dumps(one) == orjson.dumps(other)


def _only(value: Json, keys: Container[str]) -> Json:
    return {key: value[key] for key in value if key in keys}


def _without(value: Json, keys: Container[str]) -> Json:
    return {key: value[key] for key in value if key not in keys}
