"""Arbitrary messages of agents, and the nested form as version 0.3 made it: what ours is compared with."""

from typing import Any

from hypothesis import strategies as st

from clawdforge.drivers.acp.updates import UPDATE_TYPES, type_of
from clawdforge.wire.base import Json
from clawdforge.wire.event import RESERVED, EventType

SPOKEN = (EventType.TEXT, EventType.THINKING, EventType.USER)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
keys = texts | st.sampled_from(
    [
        *sorted(RESERVED),
        *("content", "name", "args", "message", "update", "agent_session_id"),
        *("jsonrpc", "method", "params", "id", "result", "error", "sessionId", "sessionUpdate"),
        *("toolCallId", "title", "kind", "status", "rawInput"),
    ]
)
objects = st.dictionaries(keys, values, max_size=5)
kinds = st.sampled_from([*UPDATE_TYPES, "never_heard_of"])
words = st.builds(lambda text: {"type": "text", "text": text}, texts)
blocks = words | st.builds(lambda rest, text: {**rest, **text}, objects, words) | values
updates = st.one_of(
    st.builds(lambda kind, block: {"sessionUpdate": kind, "content": block}, kinds, blocks),
    st.builds(lambda kind, rest: {**rest, "sessionUpdate": kind}, kinds, objects),
    st.builds(
        lambda kind, rest, block: {**rest, "sessionUpdate": kind, "content": block}, kinds, objects, blocks
    ),
)
params = st.one_of(
    st.builds(lambda name, update: {"sessionId": name, "update": update}, texts, updates),
    st.builds(lambda rest, update: {**rest, "update": update}, objects, updates | values),
    st.builds(lambda rest, update: {**update, **rest, "update": update}, objects, updates),
)
envelope = {"jsonrpc": "2.0", "method": "session/update"}
messages = st.one_of(
    objects,
    st.builds(lambda inner: {**envelope, "params": inner}, params),
    st.builds(lambda rest, inner: {**rest, **envelope, "params": inner}, objects, params | values),
    st.builds(lambda rest, inner: {**envelope, **rest, "params": inner}, objects, params),
)
"""From the most ordinary to what no agent should ever send."""


def flatten(message: Json) -> tuple[EventType, Json]:
    """Type and keys of the nested event: the message as received, its update copied flat, the rest on top."""
    kind = type_of(message)
    fields = {key: value for key, value in message.items() if key not in RESERVED}
    params = message.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    if kind is EventType.RESPONSE or not isinstance(params, dict) or not isinstance(update, dict):
        return kind, fields
    fields["params"] = {**update, **params}
    if kind in SPOKEN:
        fields["content"] = _text(update.get("content"))
    elif kind is EventType.TOOL_CALL:
        name = update.get("title") or update.get("kind") or update.get("toolCallId")
        fields |= {"name": str(name or "tool"), "args": update.get("rawInput") or {}}
    return kind, fields


def _text(content: Any) -> str:
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return ""
