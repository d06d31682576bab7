"""Events and messages of a session as the updates of the protocol; nothing here asks or waits."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clawdforge.wire.base import Json
from clawdforge.wire.event import Event, EventType
from clawdforge.wire.event_forms import nest
from clawdforge.wire.message import CALL_ID, Message, Role

CHUNK_CHARS: Final = 256 * 1024
"""A long message is replayed in pieces, so that no line is longer than a client reads."""

PASSED: Final = frozenset(
    {
        *(EventType.TEXT, EventType.THINKING, EventType.TOOL_CALL, EventType.TOOL_UPDATE, EventType.PLAN),
        *(EventType.COMMANDS, EventType.USAGE, EventType.NOTICE, EventType.COMPACTION, EventType.OTHER),
    }
)
"""What an agent said that an editor is to show. Its modes, options and title are not those of our session,
and a prompt that it repeats stands there already."""


def of_event(event: Event) -> Json | None:
    """The update that an event is shown as; None where it is not for an editor."""
    if event.type == EventType.OUTPUT_TRUNCATED:
        reason = (event.model_extra or {}).get("reason")
        return of_thought(f"Some of the output was dropped: {reason}")
    if event.type not in PASSED:
        return None
    params = nest(event.model_dump()).get("params")
    update = params.get("update") if isinstance(params, dict) else None
    if not isinstance(update, dict) or not isinstance(update.get("sessionUpdate"), str):
        return None
    return without_terminals(update)


def of_thought(text: str) -> Json:
    """Something that the editor's user should know and that nobody said."""
    return {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}


def of_prompt(text: str, message_id: str) -> Iterator[Json]:
    return _chunks("user_message_chunk", text, message_id)


def of_message(message: Message) -> Iterator[Json]:
    """A message of the transcript, as a load replays it."""
    name = f"m{message.seq}"
    if message.role == Role.USER:
        yield from of_prompt(message.content, name)
        return
    yield from _chunks("agent_thought_chunk", message.thinking, f"{name}t")
    for number, call in enumerate(message.tool_calls):
        yield _tool_call(call, f"{name}c{number}")
    if message.plan:
        yield {"sessionUpdate": "plan", "entries": message.plan}
    yield from _chunks("agent_message_chunk", message.content, name)


def without_terminals(update: Json) -> Json:
    """A terminal of the agent is one of the server, which an editor cannot look into."""
    content = update.get("content")
    if not isinstance(content, list):
        return update
    kept = [item for item in content if not (isinstance(item, dict) and item.get("type") == "terminal")]
    return update if len(kept) == len(content) else {**update, "content": kept}


def _tool_call(call: Mapping[str, Any], spare_id: str) -> Json:
    found = {key: value for key, value in call.items() if value is not None}
    title = found.get("title") or found.get("kind") or "tool"
    first = {"sessionUpdate": "tool_call", "toolCallId": spare_id, "title": title, "status": "completed"}
    if not isinstance(found.get(CALL_ID), str):
        found.pop(CALL_ID, None)
    return {**first, **found}


def _chunks(word: str, text: str, message_id: str) -> Iterator[Json]:
    for start in range(0, len(text), CHUNK_CHARS):
        content = {"type": "text", "text": text[start : start + CHUNK_CHARS]}
        yield {"sessionUpdate": word, "content": content, "messageId": message_id}
