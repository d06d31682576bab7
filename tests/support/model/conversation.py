"""What a request to a model says, whatever the protocol: who said what, and which tools are offered."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

WRAPPED: Final = re.compile(r"<([A-Za-z][\w-]*)\b[^>]*>.*?</\1>", re.DOTALL)
"""What agents put around a prompt for the model's eyes: reminders, the environment, the time."""

SIDE_TASK: Final = re.compile(
    r"\b(title|summar|topic|name (for|of) th|describe(s|d)? (the|this) (chat|conv))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    schema: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def required(self) -> list[str]:
        found = self.schema.get("required")
        return [str(name) for name in found] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class Said:
    """One message: `role` is user, assistant or tool."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A request in one shape. `turns` are the prompts of people, without what the agent wrapped them in."""

    model: str
    stream: bool
    system: str = ""
    said: Sequence[Said] = ()
    tools: Sequence[Tool] = field(default=())
    schema: Mapping[str, Any] | None = None  # of the JSON that the answer has to be

    @property
    def turns(self) -> list[str]:
        spoken = (WRAPPED.sub("", one.text).strip() for one in self.said if one.role == "user")
        return [text for text in spoken if text]

    @property
    def result(self) -> str | None:
        """The output of the tool that was called last, when nobody has said anything since."""
        for one in reversed(self.said):
            if one.role == "tool":
                return one.text
            if one.role == "user" and WRAPPED.sub("", one.text).strip():
                return None
        return None

    @property
    def aside(self) -> bool:
        """A request that the agent makes for itself: for a title, or for JSON that it decides by."""
        if self.schema is not None:
            return True
        last = self.said[-1].text if self.said else ""
        return not self.tools and SIDE_TASK.search(self.system + last[:300]) is not None

    @property
    def size(self) -> int:
        return len(self.system) + sum(len(one.text) for one in self.said)


def text_of(content: Any) -> str:
    """The text of a message: a string, or a list of parts of which some have text."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return text_of(content.get("text", content.get("content", "")))
    return "\n".join(filter(None, map(text_of, content))) if isinstance(content, list) else ""


def dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def tools_of(items: Iterable[tuple[Any, Any]]) -> list[Tool]:
    return [
        Tool(name, schema if isinstance(schema, dict) else {})
        for name, schema in items
        if isinstance(name, str) and name
    ]
