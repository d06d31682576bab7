"""A turn as a response: items of reasoning and of words in the order in which they came."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from clawdforge.core.models.rows import TurnRow
from clawdforge.http.dialects.openai.progress import End, Kind, Piece, count_tokens
from clawdforge.wire.base import Json, to_seconds
from clawdforge.wire.openai import ResponseRequest
from clawdforge.wire.sse import encode


def response_id(session_id: str, turn_index: int) -> str:
    return f"resp_{session_id}_{turn_index}"


class ResponseParts:
    """Makes the events of a response one after another, and remembers what makes up the whole of it."""

    def __init__(self, turn: TurnRow, body: ResponseRequest) -> None:
        self._name = f"{turn.session_id}_{turn.turn_index}"
        self._head: Json = {
            "id": response_id(turn.session_id, turn.turn_index),
            "object": "response",
            "created_at": to_seconds(turn.queued_at),
            "model": body.model,
            "conversation": {"id": turn.session_id},
            "previous_response_id": body.previous_response_id,
            "instructions": body.instructions,
            "metadata": body.metadata or {},
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "temperature": None,
            "top_p": None,
            "store": body.store is not False,
        }
        self._output: list[Json] = []
        self._kind: Kind | None = None
        self._texts: list[str] = []
        self._length = 0  # of these
        self._kept = 0  # characters of the items that have ended
        self._number = 0

    def begin(self) -> Iterator[bytes]:
        for name in ("created", "in_progress"):
            yield self._event(f"response.{name}", response=self._response("in_progress"))

    def feed(self, pieces: Iterable[Piece]) -> Iterator[bytes]:
        for kind, text in pieces:
            if kind != self._kind:
                yield from self._tell_close()
                self._kind = kind
                yield from self._tell_open(kind)
            self._add(text)
            name = "output_text" if kind == "text" else "reasoning_summary_text"
            more: Json = {"logprobs": []} if kind == "text" else {}
            yield self._event(f"response.{name}.delta", **self._place(), delta=text, **more)

    def end(self, end: End) -> Iterator[bytes]:
        yield from self._tell_close()
        final = self._final(end)
        yield self._event(f"response.{final['status']}", response=final)

    def count_repeated(self, pieces: Iterable[Piece], *, ends: bool) -> int:
        """Whatever has come is told again when its item ends, and when all does."""
        length, kind, most = self._length, self._kind, 0
        for following, text in pieces:
            if following != kind:
                most, length, kind = most + length, 0, following
            length += len(text)
        return most + length + self._kept if ends else most

    def keep(self, pieces: Iterable[Piece]) -> None:
        for kind, text in pieces:
            if kind != self._kind:
                self._end_item()
                self._kind = kind
            self._add(text)

    def whole(self, end: End) -> Json:
        """wire.openai.ResponseObject"""
        self._end_item()
        return self._final(end)

    def _add(self, text: str) -> None:
        self._texts.append(text)
        self._length += len(text)

    def _end_item(self) -> None:
        if self._kind is not None:
            self._output.append(self._item("completed", "".join(self._texts)))
            self._kept += self._length
            self._kind, self._texts, self._length = None, [], 0

    def _tell_open(self, kind: Kind) -> Iterator[bytes]:
        at = len(self._output)
        yield self._event("response.output_item.added", output_index=at, item=self._item("in_progress", ""))
        name = "content_part" if kind == "text" else "reasoning_summary_part"
        yield self._event(f"response.{name}.added", **self._place(), part=_part(kind, ""))

    def _tell_close(self) -> Iterator[bytes]:
        if self._kind is None:
            return
        text, kind, at = "".join(self._texts), self._kind, len(self._output)
        item = self._item("completed", text)
        name = "output_text" if kind == "text" else "reasoning_summary_text"
        more: Json = {"logprobs": []} if kind == "text" else {}
        yield self._event(f"response.{name}.done", **self._place(), text=text, **more)
        part = "content_part" if kind == "text" else "reasoning_summary_part"
        yield self._event(f"response.{part}.done", **self._place(), part=_part(kind, text))
        yield self._event("response.output_item.done", output_index=at, item=item)
        self._end_item()

    def _item(self, status: str, text: str) -> Json:
        number = f"{self._name}_{len(self._output)}"
        parts = [_part(self._kind, text)] if status == "completed" else []
        if self._kind == "reasoning":
            return {"id": f"rs_{number}", "type": "reasoning", "summary": parts, "status": status}
        said = {"type": "message", "role": "assistant", "status": status, "content": parts}
        return {"id": f"msg_{number}", **said}

    def _place(self) -> Json:
        is_text = self._kind == "text"
        number = f"{self._name}_{len(self._output)}"
        return {
            "item_id": f"msg_{number}" if is_text else f"rs_{number}",
            "output_index": len(self._output),
            "content_index" if is_text else "summary_index": 0,
        }

    def _final(self, end: End) -> Json:
        sent, cached, got = count_tokens(end.usage)
        usage = {
            "input_tokens": sent,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": got,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + got,
        }
        if end.is_failure:
            return self._response("failed", usage, error={"code": end.code, "message": end.error})
        if end.finish_reason == "stop":
            return self._response("completed", usage)
        why = "content_filter" if end.finish_reason == "content_filter" else "max_output_tokens"
        return self._response("incomplete", usage, incomplete={"reason": why})

    def _response(
        self,
        status: str,
        usage: Json | None = None,
        *,
        error: Json | None = None,
        incomplete: Json | None = None,
    ) -> Json:
        return {
            **self._head,
            "status": status,
            "output": list(self._output),
            "error": error,
            "incomplete_details": incomplete,
            "usage": usage,
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return encode(orjson.dumps(data), event=kind)


def _part(kind: Kind | None, text: str) -> Json:
    if kind == "reasoning":
        return {"type": "summary_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
