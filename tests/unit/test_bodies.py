"""Memory for bodies: what one may take, one app, and all of them."""

import pytest
from starlette.requests import Request
from starlette.types import Message

from clawdforge.http.requests.bodies import FREE_BYTES, OPEN_BYTES, BodyBudget, limit_body, read_body
from clawdforge.wire.errors import BodyTooLarge, LimitExceeded, ServerBusy


def test_an_app_gets_half_and_all_get_the_whole() -> None:
    budget = BodyBudget(100)
    with budget.claim("a") as first, budget.claim("b") as second, budget.claim("c") as third:
        first.add(FREE_BYTES + 50)
        with pytest.raises(LimitExceeded), budget.claim("a") as more:
            more.add(FREE_BYTES + 1)
        second.add(FREE_BYTES + 49)
        third.add(FREE_BYTES + 1)
        with pytest.raises(ServerBusy) as refused:
            third.add(1)
        assert refused.value.retry_after
        with budget.claim("a") as small:
            small.add(FREE_BYTES)
        assert budget.held == 100
    assert budget.held == 0


def test_a_body_is_counted_once_however_many_pieces_it_has() -> None:
    budget = BodyBudget(1000)
    with budget.claim("a") as claim:
        for _ in range(FREE_BYTES + 10):
            claim.add(1)
        assert budget.held == 10
    assert budget.held == 0


def request(pieces: list[bytes], length: int | None = None) -> Request:
    async def receive() -> Message:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    headers = [] if length is None else [(b"content-length", b"%d" % length)]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


async def no_turn() -> None:
    raise AssertionError("a small body waits for nobody")


async def test_a_large_body_waits_for_a_turn_with_each_piece() -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        turns += 1

    pieces = [b"x" * FREE_BYTES] * 5
    with BodyBudget(1 << 20).claim("a") as claim:
        assert len(await read_body(request(pieces), claim, turn, is_open=False)) == 5 * FREE_BYTES
    assert turns == 4


@pytest.mark.parametrize(
    ("size", "length", "fits"),
    [(OPEN_BYTES, None, True), (OPEN_BYTES + 1, None, False), (1, OPEN_BYTES, True), (1, 4097, False)],
)
async def test_a_stranger_may_send_little(size: int, length: int | None, fits: bool) -> None:
    pieces = [b"x" * (size - 1), b"x"]
    with BodyBudget(0).claim("") as claim:
        if fits:
            assert await read_body(request(pieces, length), claim, no_turn, is_open=True) == b"x" * size
        else:
            with pytest.raises(BodyTooLarge, match="4,096"):
                await read_body(request(pieces, length), claim, no_turn, is_open=True)


@pytest.mark.parametrize(
    ("pieces", "length", "fits"),
    [([b"12345", b"67890"], None, True), ([b"12345", b"678901"], None, False), ([b"1"], 11, False)],
)
async def test_a_body_is_counted_as_it_is_read(pieces: list[bytes], length: int | None, fits: bool) -> None:
    receive = limit_body(request(pieces, length), 10, BodyTooLarge)

    async def read() -> int:
        size = 0
        while (message := await receive())["more_body"]:
            size += len(message["body"])
        return size + len(message["body"])

    if fits:
        assert await read() == 10
    else:
        with pytest.raises(BodyTooLarge):
            await read()
