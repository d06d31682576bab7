"""A turn's events as the parts of Vercel's UI message stream: a map with no memory but of what is open."""

from collections.abc import Iterator

from clawdforge.http.dialects.ui import blocks
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome


class VercelMap:
    def __init__(self, name: str) -> None:
        self._name = name
        self._blocks = blocks.Blocks()
        self._has_begun = False

    def take(self, event: Json) -> Iterator[Json]:
        kind = event["type"]
        if not self._has_begun and kind in (EventType.TURN_STARTED, EventType.TURN_ENDED):
            self._has_begun = True
            yield {"type": "start", "messageId": self._name}
        if kind in blocks.KINDS and event.get("content"):
            word = blocks.KINDS[kind]
            yield from self._enter(word)
            yield {"type": f"{word}-delta", "id": str(self._blocks.number), "delta": event["content"]}
        elif (call := blocks.find_call(event)) is not None:
            yield from self._enter(None)
            yield from self._call(event, *call)
        elif kind == EventType.TURN_ENDED:
            yield from self._enter(None)
            yield from _end(event)
        elif kind in (EventType.PERMISSION_REQUESTED, EventType.PERMISSION_DECIDED):
            told = {key: event.get(key) for key in ("permission_id", "tool", "decision")}
            yield {"type": "data-permission", "id": str(event.get("permission_id")), "data": told}

    def _enter(self, kind: blocks.Kind | None) -> Iterator[Json]:
        ended, begun = self._blocks.enter(kind)
        if ended is not None:
            yield {"type": f"{ended[0]}-end", "id": str(ended[1])}
        if begun is not None:
            yield {"type": f"{begun[0]}-start", "id": str(begun[1])}

    def _call(self, event: Json, call_id: str, update: Json) -> Iterator[Json]:
        known, at = self._blocks.open_calls, {"toolCallId": call_id}
        ran = {"dynamic": True, "providerExecuted": True}  # here, and not by the page
        if event["type"] == EventType.TOOL_CALL and call_id not in known:
            known[call_id] = blocks.name_of(event, update)
            given = {"toolName": known[call_id], "input": blocks.input_of(update)}
            yield {"type": "tool-input-available", **at, **given, **ran}
        if update.get("status") in blocks.OVER and known.get(call_id):
            known[call_id] = ""  # told
            text = blocks.output_of(update)
            if update["status"] == "failed":
                yield {"type": "tool-output-error", **at, "errorText": text or "it failed", **ran}
            else:
                yield {"type": "tool-output-available", **at, "output": text, **ran}


def _end(event: Json) -> Iterator[Json]:
    failed = blocks.failure_of(event)
    if failed is not None:
        yield {"type": "error", "errorText": failed[0]}
    elif event.get("outcome") == Outcome.COMPLETED:
        yield {"type": "finish"}
    else:
        yield {"type": "abort"}
