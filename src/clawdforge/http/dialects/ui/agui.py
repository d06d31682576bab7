"""A turn's events as those of AG-UI: a map with no memory but of what is open."""

from collections.abc import Iterator

import orjson

from clawdforge.http.dialects.ui import blocks
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome

NAMES = {"text": "TEXT_MESSAGE", "reasoning": "REASONING_MESSAGE"}


class AguiMap:
    def __init__(self, name: str, thread_id: str, run_id: str) -> None:
        self._name = name
        self._run: Json = {"threadId": thread_id, "runId": run_id}
        self._blocks = blocks.Blocks()
        self._has_begun = False

    def take(self, event: Json) -> Iterator[Json]:
        kind = event["type"]
        if not self._has_begun and kind in (EventType.TURN_STARTED, EventType.TURN_ENDED):
            self._has_begun = True
            yield {"type": "RUN_STARTED", **self._run}
        if kind in blocks.KINDS and event.get("content"):
            word = blocks.KINDS[kind]
            yield from self._enter(word)
            yield {"type": f"{NAMES[word]}_CONTENT", "messageId": self._id(), "delta": event["content"]}
        elif (call := blocks.find_call(event)) is not None:
            yield from self._enter(None)
            yield from self._call(event, *call)
        elif kind == EventType.TURN_ENDED:
            yield from self._enter(None)
            yield from self._end(event)
        elif kind in (EventType.PERMISSION_REQUESTED, EventType.PERMISSION_DECIDED):
            yield {"type": "CUSTOM", "name": kind, "value": _without_place(event)}

    def _enter(self, kind: blocks.Kind | None) -> Iterator[Json]:
        before = self._id()
        ended, begun = self._blocks.enter(kind)
        if ended is not None:
            yield {"type": f"{NAMES[ended[0]]}_END", "messageId": before}
            if ended[0] == "reasoning":
                yield {"type": "REASONING_END", "messageId": before}
        if begun is not None:
            if begun[0] == "reasoning":
                yield {"type": "REASONING_START", "messageId": self._id()}
            role = "assistant" if begun[0] == "text" else "reasoning"
            yield {"type": f"{NAMES[begun[0]]}_START", "messageId": self._id(), "role": role}

    def _call(self, event: Json, call_id: str, update: Json) -> Iterator[Json]:
        known = self._blocks.open_calls
        if event["type"] == EventType.TOOL_CALL and call_id not in known:
            known[call_id] = blocks.name_of(event, update)
            yield {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": known[call_id]}
            given = orjson.dumps(blocks.input_of(update)).decode()
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": given}
            yield {"type": "TOOL_CALL_END", "toolCallId": call_id}
        if update.get("status") in blocks.OVER and known.get(call_id):
            known[call_id] = ""  # told
            text = blocks.output_of(update) or str(update["status"])
            name = f"{self._name}-{call_id}"
            result = {"messageId": name, "toolCallId": call_id, "content": text, "role": "tool"}
            yield {"type": "TOOL_CALL_RESULT", **result}

    def _end(self, event: Json) -> Iterator[Json]:
        failed = blocks.failure_of(event)
        if failed is not None:
            yield {"type": "RUN_ERROR", "message": failed[0], "code": failed[1]}
            return
        word = "success" if event.get("outcome") == Outcome.COMPLETED else "cancelled"
        yield {"type": "RUN_FINISHED", **self._run, "outcome": {"type": word}}

    def _id(self) -> str:
        return f"{self._name}-{self._blocks.number}"


def _without_place(event: Json) -> Json:
    return {key: value for key, value in event.items() if key not in ("seq", "ts", "turn", "type")}
