"""A line that is too long is answered for, wherever its id stands and whatever it is."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from clawdforge.core.pacing.pace import Pace
from clawdforge.jsonrpc.lost import Lost, read_head
from clawdforge.jsonrpc.rpc import Connection
from tests.unit.rpc_peer import Heard

LONG = b'{"x": "' + b"y" * 300


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":' + LONG, Lost(7, is_request=True)),
        (b'{"id": "r-1", "jsonrpc": "2.0", "method": "m", "params": ' + LONG, Lost("r-1", is_request=True)),
        (b'{"method":"m","jsonrpc":"2.0","id":-3,"params":' + LONG, Lost(-3, is_request=True)),
        (b'{"id":"a\\"b","method":"' + LONG, Lost('a"b', is_request=True)),
        (b'{"id":4,"params":' + LONG, Lost(4, is_request=True)),
        (b'{"jsonrpc":"2.0","id":5,"result":' + LONG, Lost(5, is_answer=True)),
        (b'{"jsonrpc":"2.0","method":"m","params":{"id":9,"x":"' + LONG, Lost(is_request=True)),
        (b'{"method":"m","id":null,"params":' + LONG, Lost(is_request=True)),
        (b'{"id":"\\ud800","method":"m","params":' + LONG, Lost(is_request=True)),
        (b'{"id":"' + b"y" * 300, Lost()),
        (b"y" * 300, Lost()),
        (b"", Lost()),
    ],
)
def test_what_the_start_of_a_line_tells(head: bytes, found: Lost) -> None:
    assert read_head(head[:256]) == found


class Lines:
    """An editor that has said all that it will, and stays."""

    def __init__(self, said: bytes) -> None:
        self._said = [said]
        self.heard: asyncio.Queue[Any] = asyncio.Queue()

    async def read(self) -> bytes:
        if self._said:
            return self._said.pop()
        return await asyncio.Future()

    async def write(self, pieces: Sequence[bytes]) -> None:
        await self.heard.put(json.loads(b"".join(pieces)))

    def unread(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("start", "number"),
    [
        (b'{"jsonrpc":"2.0","id":"r-1","method":"m","params":"', "r-1"),
        (b'{"method":"m","params":"', None),
        (b"", None),
    ],
)
async def test_whoever_sends_a_line_that_is_too_long_is_told(start: bytes, number: str | None) -> None:
    pipe = Lines(start + b"y" * 2000 + b"\n")
    connection = Connection(pipe, Heard(), Pace().of("app"), max_line_bytes=1000, answers_garbage=True)
    async with asyncio.timeout(10):
        told = await pipe.heard.get()
    await connection.close()
    assert (told["id"], told["error"]["code"]) == (number, -32600)
