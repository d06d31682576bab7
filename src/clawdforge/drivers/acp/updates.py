"""What an ACP agent sends, as events: the table of its updates, and the one place that reads them."""

from collections.abc import Mapping
from typing import Any, Final

from clawdforge.core.models.events import AgentEvent
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import compact_fields

UPDATE_TYPES: Final[dict[str, EventType]] = {
    "agent_message_chunk": EventType.TEXT,
    "agent_thought_chunk": EventType.THINKING,
    "user_message_chunk": EventType.USER,
    "tool_call": EventType.TOOL_CALL,
    "tool_call_update": EventType.TOOL_UPDATE,
    "plan": EventType.PLAN,
    "plan_update": EventType.PLAN,
    "plan_removed": EventType.PLAN,
    "current_mode_update": EventType.MODE,
    "available_commands_update": EventType.COMMANDS,
    "config_option_update": EventType.CONFIG,
    "session_info_update": EventType.INFO,
    "usage_update": EventType.USAGE,
    "notice": EventType.NOTICE,
    "compaction_update": EventType.COMPACTION,
    "compaction_summary_chunk": EventType.COMPACTION,
}
"""An ACP `sessionUpdate` word and the type it becomes; any other word is `other`."""


def read_message(message: Json) -> AgentEvent:
    """A message of the agent as the event that it becomes."""
    kind = type_of(message)
    return AgentEvent(kind, compact_fields(kind, message))


def type_of(message: Json) -> EventType:
    if "method" not in message:
        return EventType.RESPONSE
    update = update_in(message)
    return EventType.OTHER if update is None else UPDATE_TYPES.get(word_of(update), EventType.OTHER)


def update_in(message: Json) -> Json | None:
    """The update that a `session/update` carries, if it is one at all."""
    params = message.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    return update if isinstance(update, dict) else None


def word_of(update: Mapping[str, Any]) -> str:
    """What kind of update it is, in the agent's word."""
    word = update.get("sessionUpdate")
    return word if isinstance(word, str) else ""
