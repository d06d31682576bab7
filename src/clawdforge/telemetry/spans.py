"""Makes the spans of a turn, as OpenTelemetry's conventions for generative AI want them.

A turn is `invoke_agent {agent}`, and each call of a tool below it `execute_tool {tool}`. What was said is in
them only where it is wanted: without it, they have ids, numbers and words of ours.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from clawdforge.core.models.rows import TurnRow
from clawdforge.core.models.traces import Place, ToolTrace, TurnTrace
from clawdforge.core.rules.traces import find_place, find_tool_place
from clawdforge.wire.turn import Outcome

CONVENTIONS: Final = "1.41.0"
"""The version of OpenTelemetry's semantic conventions that these names are from."""

SCHEMA: Final = f"https://opentelemetry.io/schemas/{CONVENTIONS}"
MAX_CHARS: Final = 16_384
MAX_WORD: Final = 200
WELL: Final = frozenset({Outcome.COMPLETED, Outcome.CANCELLED})
"""Outcomes that are no error: what somebody has stopped ended as it should."""

UNFINISHED: Final = "unfinished"
"""Of a call: nobody said how it ended."""

Attributes = Mapping[str, Any]


class SpanMaker:
    """Makes spans in the name of one server."""

    def __init__(self, resource: Resource, version: str, *, with_content: bool) -> None:
        self._resource = resource
        self._scope = InstrumentationScope("clawdforge", version, SCHEMA)
        self._with_content = with_content

    def make(self, trace: TurnTrace) -> list[ReadableSpan]:
        """The turn first, then its calls of tools in order."""
        return [self._make_turn(trace), *(self._make_tool(trace, tool) for tool in trace.tools)]

    def _make_turn(self, trace: TurnTrace) -> ReadableSpan:
        turn, agent = trace.turn, trace.agent
        error = _find_error(turn)
        known = _without_none(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": agent,
                "gen_ai.agent.name": agent,
                "gen_ai.conversation.id": turn.session_id,
                "gen_ai.request.model": _word(trace.model),
                "gen_ai.response.finish_reasons": [_word(turn.stop_reason)] if turn.stop_reason else None,
                **_read_usage(turn.usage or {}),
                "error.type": error,
                "clawdforge.app": trace.app,
                "clawdforge.turn.index": turn.turn_index,
                "clawdforge.turn.outcome": str(turn.outcome),
                "clawdforge.turn.stopped_by": turn.stopped_by,
                "clawdforge.turn.retry_of": turn.retry_of,
                "clawdforge.turn.queued_secs": _find_wait(turn),
                "clawdforge.turn.tools": len(trace.tools),
                "clawdforge.turn.is_whole": None if trace.is_whole else False,
            }
        )
        if self._with_content:
            known |= {
                "gen_ai.input.messages": _tell("user", turn.prompt),
                "gen_ai.output.messages": _tell("assistant", trace.answer, turn.stop_reason or "error"),
            }
        words = turn.error if self._with_content else None
        return self._make(
            f"invoke_agent {agent}",
            find_place(turn),
            (turn.started_at or 0, turn.ended_at or 0),
            known,
            _status(error, words),
            is_remote=True,
        )

    def _make_tool(self, trace: TurnTrace, tool: ToolTrace) -> ReadableSpan:
        """A call of whose end nothing was heard ends with its turn."""
        is_cut = tool.ended_at is None
        error = _find_error(trace.turn) if is_cut else None
        error = "failed" if tool.status == "failed" else error
        known = _without_none(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool.name,
                "gen_ai.tool.call.id": tool.call_id,
                "gen_ai.tool.type": "function",
                "error.type": error,
                "clawdforge.app": trace.app,
                "clawdforge.tool.kind": tool.kind,
                "clawdforge.tool.status": UNFINISHED if is_cut else tool.status,
            }
        )
        if self._with_content:
            known |= {
                "clawdforge.tool.title": tool.title,
                "gen_ai.tool.call.arguments": tool.given or "",
                "gen_ai.tool.call.result": tool.got or "",
            }
        times = (tool.started_at, tool.ended_at or trace.turn.ended_at or tool.started_at)
        name = f"execute_tool {tool.name}"
        return self._make(name, find_tool_place(trace.turn, tool.number), times, known, _status(error))

    def _make(
        self,
        name: str,
        place: Place,
        times: tuple[int, int],
        attributes: Attributes,
        status: Status,
        *,
        is_remote: bool = False,
    ) -> ReadableSpan:
        """`is_remote` is whether the span above it is somebody else's. A clock may have been set back."""
        above = place.parent_id and _context(place.trace_id, place.parent_id, is_remote=is_remote)
        return ReadableSpan(
            name,
            _context(place.trace_id, place.span_id),
            above or None,
            self._resource,
            attributes,
            kind=SpanKind.INTERNAL,
            status=status,
            start_time=times[0] * 1000,
            end_time=max(times) * 1000,
            instrumentation_scope=self._scope,
        )


def _context(trace_id: str, span_id: str, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote, TraceFlags(TraceFlags.SAMPLED))


def _find_error(turn: TurnRow) -> str | None:
    """A word of ours for what went wrong, if something did."""
    if turn.outcome in WELL:
        return None
    return turn.code or str(turn.outcome)


def _status(error: str | None, words: str | None = None) -> Status:
    return Status(StatusCode.ERROR, words and words[:MAX_CHARS]) if error else Status()


def _read_usage(usage: Attributes) -> dict[str, Any]:
    """The conventions count what was read from a cache as part of the input; we count it beside that."""
    cached = usage.get("cached_tokens", 0)
    if not usage:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.get("input_tokens", 0) + cached,
        "gen_ai.usage.output_tokens": usage.get("output_tokens", 0),
        "gen_ai.usage.cache_read.input_tokens": cached or None,
        "clawdforge.usage.cost_usd": usage.get("cost_usd"),
        "clawdforge.usage.estimated": bool(usage.get("estimated")),
    }


def _find_wait(turn: TurnRow) -> float | None:
    return None if turn.started_at is None else max(0, turn.started_at - turn.queued_at) / 1_000_000


def _tell(role: str, text: str, finish_reason: str | None = None) -> str:
    """One message in the shape that the conventions have for content."""
    message: dict[str, Any] = {"role": role, "parts": [{"type": "text", "content": text[:MAX_CHARS]}]}
    if finish_reason is not None:
        message["finish_reason"] = finish_reason[:MAX_WORD]
    return orjson.dumps([message]).decode()


def _word(text: str | None) -> str | None:
    return text and text[:MAX_WORD]


def _without_none(attributes: Attributes) -> dict[str, Any]:
    return dict(_given(attributes))


def _given(attributes: Attributes) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in attributes.items() if value is not None)
