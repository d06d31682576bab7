"""The head of an answer goes out with its body, and never waits for one that is not there."""

import asyncio
from typing import Any, cast

import pytest

from clawdforge.http.connections.joined_head import LARGE_BYTES, JoinedHead

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Wire:
    """A transport that keeps what each write was."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.said.append(data)

    def close(self) -> None:
        self.said.append(b"closed")


def joined(wire: Wire) -> JoinedHead:
    return JoinedHead(cast(Any, wire), asyncio.get_running_loop())


async def test_a_body_that_is_there_goes_with_its_head() -> None:
    wire = Wire()
    answer = joined(wire)
    answer.write(HEAD)
    answer.write(b"body")
    answer.write(b"more")
    assert wire.said == [HEAD + b"body", b"more"]
    await asyncio.sleep(0)
    assert wire.said == [HEAD + b"body", b"more"]


async def test_a_head_without_a_body_goes_in_the_next_pass() -> None:
    wire = Wire()
    answer = joined(wire)
    answer.write(HEAD)
    assert wire.said == []
    await asyncio.sleep(0)
    answer.write(b"late")
    assert wire.said == [HEAD, b"late"]


async def test_the_end_of_a_connection_takes_no_head_with_it() -> None:
    wire = Wire()
    answer = joined(wire)
    answer.write(HEAD)
    answer.close()
    await asyncio.sleep(0)
    assert wire.said == [HEAD, b"closed"]


@pytest.mark.parametrize(("size", "writes"), [(LARGE_BYTES, 1), (LARGE_BYTES + 1, 2)])
async def test_a_large_body_is_not_copied(size: int, writes: int) -> None:
    wire = Wire()
    answer = joined(wire)
    answer.write(HEAD)
    answer.write(b"x" * size)
    assert len(wire.said) == writes
    assert b"".join(wire.said) == HEAD + b"x" * size
