"""Events of an agent, one class for each type; `event_kinds` has the server's, and all of them together.

They are the same values as `Event` holds, read from what was sent: an older server's event has defaults, a
newer one's has more keys. A type that this version does not know stays an `Event`.
"""

from typing import Any, Generic, Literal, TypeVar, cast, overload

from pydantic import ConfigDict

from clawdforge.wire.base import Json
from clawdforge.wire.event import Event

T = TypeVar("T")


class Sent(Generic[T]):
    """A key of the event; the default where it was not sent, or sent as null."""

    def __init__(self, default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, event: None, owner: type) -> "Sent[T]": ...
    @overload
    def __get__(self, event: Event, owner: type) -> T: ...
    def __get__(self, event: Event | None, owner: type) -> "T | Sent[T]":
        if event is None:
            return self
        value = (event.model_extra or {}).get(self._name)
        return self._default if value is None else cast("T", value)


class Typed(Event):
    model_config = ConfigDict(ignored_types=(Sent,))


class TextEvent(Typed):
    """Words of the answer."""

    type: Literal["text"]


class ThinkingEvent(Typed):
    """Words of the agent's thoughts."""

    type: Literal["thinking"]


class UserWordsEvent(Typed):
    """Words of a prompt, as the agent repeats them."""

    type: Literal["user"]


class ToolCallEvent(Typed):
    """A tool is called."""

    type: Literal["tool_call"]
    name = Sent[str]("")
    args = Sent[Any](None)
    update = Sent[Json]({})


class ToolUpdateEvent(Typed):
    """What became of a call."""

    type: Literal["tool_update"]
    update = Sent[Json]({})


class PlanEvent(Typed):
    """What the agent means to do."""

    type: Literal["plan"]
    update = Sent[Json]({})


class ModeEvent(Typed):
    """The agent changed its mode."""

    type: Literal["mode"]
    update = Sent[Json]({})


class CommandListEvent(Typed):
    """What the agent takes behind a slash."""

    type: Literal["commands"]
    update = Sent[Json]({})


class ConfigEvent(Typed):
    """An option of the agent changed."""

    type: Literal["config"]
    update = Sent[Json]({})


class InfoEvent(Typed):
    """What the agent calls the session."""

    type: Literal["info"]
    update = Sent[Json]({})


class UsageUpdateEvent(Typed):
    """How full the agent's context is."""

    type: Literal["usage"]
    update = Sent[Json]({})


class NoticeEvent(Typed):
    """A remark of the agent."""

    type: Literal["notice"]
    update = Sent[Json]({})


class CompactionEvent(Typed):
    """The agent shortens its memory."""

    type: Literal["compaction"]
    update = Sent[Json]({})


class ResponseEvent(Typed):
    """The agent's answer to the prompt itself: how it ended."""

    type: Literal["response"]
    result = Sent[Json]({})
    error = Sent[Json]({})


class OtherEvent(Typed):
    """Anything else that the agent sent."""

    type: Literal["other"]
    message = Sent[Json]({})
