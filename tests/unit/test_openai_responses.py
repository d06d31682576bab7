"""A long response: kept without being written, and written beside the event loop when it ends."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import TurnRow
from clawdforge.http.dialects.openai.progress import Piece, end_of
from clawdforge.http.dialects.openai.responses import ResponseParts
from clawdforge.http.dialects.openai.routers import _frames
from clawdforge.http.replies.piecewise import SLICE_BYTES
from clawdforge.wire.json_bounds import LARGE_BYTES
from clawdforge.wire.openai import ResponseRequest
from clawdforge.wire.turn import TurnState

ENDED = {"type": "turn.ended", "outcome": "completed", "stop_reason": "end_turn", "usage": {}}
PIECES: list[Piece] = [("reasoning", "hm"), ("text", "a"), ("text", "b"), ("reasoning", "so"), ("text", "c")]


def parts() -> ResponseParts:
    turn = TurnRow(session_id="s", turn_index=1, state=TurnState.ENDED, prompt="p", queued_at=1)
    return ResponseParts(turn, ResponseRequest(model="claude", input="p"))


def stored(seq: int, kind: str, content: str) -> StoredEvent:
    return StoredEvent(seq, kind, 1, orjson.dumps({"type": kind, "content": content}))


def read_last(frames: bytes) -> Any:
    *_, last = (line for line in frames.split(b"\n") if line.startswith(b"data: "))
    return orjson.loads(last.removeprefix(b"data: "))


def test_what_is_kept_is_not_written_and_is_what_a_stream_ends_with(monkeypatch: pytest.MonkeyPatch) -> None:
    streamed = parts()
    frames = b"".join([*streamed.begin(), *streamed.feed(PIECES), *streamed.end(end_of(ENDED))])

    def refuse(_: Any) -> bytes:
        raise AssertionError("nobody reads it")

    monkeypatch.setattr(orjson, "dumps", refuse)
    kept = parts()
    kept.keep(PIECES[:2])
    kept.keep(PIECES[2:])
    whole = kept.whole(end_of(ENDED))
    monkeypatch.undo()
    assert read_last(frames) == {**read_last(frames), "type": "response.completed", "response": whole}
    texts = [part["text"] for item in whole["output"] for part in item.get("content", item.get("summary"))]
    assert texts == ["hm", "ab", "so", "c"]


@pytest.mark.parametrize(
    ("length", "kinds", "beside"),
    [
        (LARGE_BYTES, ["text"], 0),
        (LARGE_BYTES + 1, ["text"], 1),
        (LARGE_BYTES // 2 + 1, ["text", "thinking"], 1),
        (LARGE_BYTES + 1, ["text", "thinking"], 2),
    ],
    ids=["at the bound", "one more", "the whole alone", "an item and the whole"],
)
async def test_what_a_long_answer_repeats_is_written_beside_the_loop(
    length: int, kinds: list[str], beside: int
) -> None:
    calls = 0

    async def run(work: Callable[[], list[bytes]]) -> list[bytes]:
        nonlocal calls
        calls += 1
        return work()

    async def batches() -> AsyncIterator[list[StoredEvent]]:
        for seq, kind in enumerate(kinds, 1):
            yield [stored(seq, kind, content="x" * length)]
        yield [StoredEvent(9, "turn.ended", 1, orjson.dumps(ENDED))]

    pieces = [piece async for piece in _frames(batches(), 1, parts(), run)]
    assert calls == beside
    assert max(map(len, pieces)) <= SLICE_BYTES
    final = read_last(b"".join(pieces))
    assert final["type"] == "response.completed"
    assert len(final["response"]["output"]) == len(kinds)
