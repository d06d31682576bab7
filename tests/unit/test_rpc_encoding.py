"""Long texts are encoded in pieces: the same bytes, others in between, and nothing said later comes first."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from clawdforge.core.pacing.pace import AppPace, Pace
from clawdforge.jsonrpc.encoding import LONG_CHARS, PIECE_CHARS, LongText, encode_in_pieces, encode_lines
from clawdforge.jsonrpc.rpc import Connection
from tests.unit.rpc_peer import Heard

LONG = 'a "quoted" \\ line\n\u00e9\u0000\U0001f600' * (LONG_CHARS // 10)


class Taking:
    """Says nothing, and keeps what it is told."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    async def read(self) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def write(self, pieces: Sequence[bytes]) -> None:
        self.written += pieces

    def unread(self) -> int:
        return 0

    def methods(self) -> list[str]:
        return [orjson.loads(line)["method"] for line in b"".join(self.written).splitlines()]


class Slow(AppPace):
    """Each step has to wait for its turn."""

    async def enter(self) -> None:
        await asyncio.sleep(0.001)


def a_prompt(*texts: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text} for text in texts]
    return {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"prompt": blocks}}


@pytest.mark.parametrize(
    "texts", [(LONG,), (LONG, "short", LONG + "!"), ("short", LONG), ("x" * (LONG_CHARS + 1),)]
)
def test_pieces_are_the_bytes_of_the_whole_and_short(texts: tuple[str, ...]) -> None:
    pieces = list(encode_in_pieces(a_prompt(*texts)))
    assert b"".join(pieces) == orjson.dumps(a_prompt(*texts))
    assert max(map(len, pieces)) <= 6 * PIECE_CHARS + 2


def test_a_lone_surrogate_fails_as_it_does_at_once() -> None:
    with pytest.raises(TypeError):
        list(encode_in_pieces(a_prompt(LONG + "\ud800")))


async def test_others_run_between_the_pieces_of_a_long_text_alone() -> None:
    pauses = 0

    async def pause() -> None:
        nonlocal pauses
        pauses += 1

    short = await encode_lines((a_prompt("short"),), pause)
    assert (short, pauses) == ([orjson.dumps(a_prompt("short")) + b"\n"], 0)
    pieces = await encode_lines((a_prompt("first"), a_prompt(LONG), a_prompt("last")), pause)
    assert pauses >= len(LONG) // PIECE_CHARS
    said = [a_prompt("first"), a_prompt(LONG), a_prompt("last")]
    assert b"".join(pieces) == b"".join(orjson.dumps(message) + b"\n" for message in said)
    assert max(map(len, pieces)) <= 6 * PIECE_CHARS + 2


@pytest.mark.parametrize("pieces", [(LONG[:1000], LONG[1000:2000]), ("",), ("", LONG[:PIECE_CHARS], "")])
async def test_a_text_that_comes_in_pieces_is_sent_like_a_whole_one(pieces: tuple[str, ...]) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": LongText(pieces)}}
    whole = {"jsonrpc": "2.0", "id": 1, "result": {"content": "".join(pieces)}}
    lines = await encode_lines((answer,), AppPace(Pace(), "app").enter)
    assert b"".join(lines) == orjson.dumps(whole) + b"\n"


async def test_what_is_said_while_a_long_message_is_encoded_comes_after_it() -> None:
    pipe = Taking()
    connection = Connection(pipe, Heard(), Slow(Pace(), "app"))
    prompt = asyncio.create_task(connection.request("session/prompt", {"text": LONG}))
    await asyncio.sleep(0.002)
    await connection.notify("session/cancel", {})
    assert pipe.methods() == ["session/prompt", "session/cancel"]
    prompt.cancel()
    await connection.close()


async def test_a_long_message_that_is_given_up_while_it_is_encoded_is_not_said_by_half() -> None:
    pipe = Taking()
    connection = Connection(pipe, Heard(), Slow(Pace(), "app"))
    prompt = asyncio.create_task(connection.request("session/prompt", {"text": LONG}))
    await asyncio.sleep(0.002)
    prompt.cancel()
    await asyncio.gather(prompt, return_exceptions=True)
    await connection.notify("session/cancel", {})
    assert pipe.methods() == ["session/cancel"]
    await connection.close()
