"""A turn as a chat completion: whole, or as chunks that a stream consists of."""

from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from clawdforge.core.models.rows import TurnRow
from clawdforge.http.dialects.openai.progress import End, Piece, count_tokens
from clawdforge.wire.base import Json, to_seconds
from clawdforge.wire.sse import encode

DONE: Final = b"data: [DONE]\n\n"


class Completion:
    """What all chunks of one answer share."""

    def __init__(self, turn: TurnRow, model: str, *, with_usage: bool) -> None:
        self._head: Json = {
            "id": f"chatcmpl-{turn.session_id}_{turn.turn_index}",
            "created": to_seconds(turn.queued_at),
            "model": model,
            "session_id": turn.session_id,
        }
        self._with_usage = with_usage
        self._texts: list[str] = []
        self._reasoning: list[str] = []

    def begin(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def feed(self, pieces: Iterable[Piece]) -> Iterator[bytes]:
        for kind, text in pieces:
            yield self._chunk({"content" if kind == "text" else "reasoning_content": text})

    def end(self, end: End) -> Iterator[bytes]:
        """A turn that failed ends with an error, without the words that end an answer."""
        if end.is_failure:
            failure = {"message": end.error, "type": "server_error", "param": None, "code": end.code}
            yield encode(orjson.dumps({"error": failure}))
            return
        yield self._chunk({}, end.finish_reason)
        if self._with_usage:
            yield encode(orjson.dumps(self._body("chat.completion.chunk", [], usage=_usage(end))))
        yield DONE

    def count_repeated(self, pieces: Iterable[Piece], *, ends: bool) -> int:  # noqa: ARG002 - as of any shape
        return 0  # a chunk has what is new

    def keep(self, pieces: Iterable[Piece]) -> None:
        """For the whole answer."""
        for kind, text in pieces:
            (self._texts if kind == "text" else self._reasoning).append(text)

    def whole(self, end: End) -> Json:
        """wire.openai.ChatCompletion"""
        message: Json = {"role": "assistant", "content": "".join(self._texts), "refusal": None}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.finish_reason}
        return self._body("chat.completion", [choice], usage=_usage(end))

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        more: Json = {"usage": None} if self._with_usage else {}
        return encode(orjson.dumps(self._body("chat.completion.chunk", [choice], **more)))

    def _body(self, kind: str, choices: list[Json], **more: Json | None) -> Json:
        return {**self._head, "object": kind, "choices": choices, **more}


def _usage(end: End) -> Json:
    sent, cached, got = count_tokens(end.usage)
    return {
        "prompt_tokens": sent,
        "completion_tokens": got,
        "total_tokens": sent + got,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
