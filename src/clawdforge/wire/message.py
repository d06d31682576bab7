"""A message: who said what. A projection of events with a rising `seq` that is never used again."""

from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from clawdforge.wire.base import Json, Reply

CALL_ID: Final = "toolCallId"
CALL_INPUT: Final = "rawInput"
CALL_OUTPUT: Final = "rawOutput"
CALL_KEYS: Final = (CALL_ID, "title", "kind", "status", CALL_INPUT, CALL_OUTPUT, "locations")
"""What a message keeps of a tool call, under the names that agents have for it."""


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Message(Reply):
    """One line of the transcript. `ts` is ISO text; `pending` marks a prompt whose turn has not ended."""

    seq: int
    role: str
    content: str
    ts: str
    turn: int | None = None
    thinking: str = ""
    tool_calls: list[Json] = Field(default_factory=list)
    plan: list[Any] = Field(default_factory=list)
    token_count: int = 0
    is_summary: bool = False
    archived: bool = False
    pending: bool = False
    truncated: bool = False


class MessagePage(Reply):
    """Oldest first. `next` is the `after` of the following page, null on the last one; `previous` is the
    `before` of the page above it, null on the first one."""

    ok: bool = True
    session_id: str
    messages: list[Message]
    count: int
    next: int | None = None
    previous: int | None = None


class SearchHit(Reply):
    """A message that matches; `snippet` has the found words between « and »."""

    session_id: str
    title: str
    seq: int
    turn: int | None
    role: str
    ts: str
    snippet: str


class SearchPage(Reply):
    ok: bool = True
    hits: list[SearchHit]
    count: int
    next: str | None = None


def estimate_tokens(text: str) -> int:
    """Tokens of a text at four bytes each: an estimate, and marked as one wherever it is shown."""
    return (len(text.encode("utf-8", "replace")) + 3) // 4 if text else 0
