"""A turn as a trace tells of it: where it stands among others' spans, and which tools were used in it."""

from dataclasses import dataclass
from typing import NamedTuple

from clawdforge.core.models.rows import TurnRow
from clawdforge.wire.base import Micros


class Place(NamedTuple):
    """Of a span: its trace, its own id, and the id of the span above it. All of them are hex digits."""

    trace_id: str
    span_id: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTrace:
    """One call of a tool. `ended_at` is None when nothing was heard of its end.

    `title`, `given` and `got` are content: what the agent calls it, what went into it and what came out.
    """

    number: int
    call_id: str
    name: str
    kind: str | None
    status: str | None
    started_at: Micros
    ended_at: Micros | None = None
    title: str = ""
    given: str | None = None
    got: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTrace:
    """A turn that has ended. What was said and done in it is there only if content is wanted."""

    app: str
    agent: str
    model: str | None = None
    turn: TurnRow  # without what was said, or with the beginning of it
    tools: tuple[ToolTrace, ...] = ()
    answer: str = ""
    is_whole: bool = True  # all of its calls of tools are here
