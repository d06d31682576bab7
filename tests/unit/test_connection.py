"""What a connection keeps of the answers about its other end: those that are certain."""

import asyncio
import socket
from collections.abc import Awaitable, Iterator

import pytest

from clawdforge.core.ports import Standing
from clawdforge.core.ports.callers import Address
from clawdforge.http.connections.connection import Connection


class Answers:
    """Gives these answers, one after the other, and counts the questions."""

    def __init__(self, *standings: Standing) -> None:
        self._standings = iter(standings)
        self.asked = 0

    def _next(self) -> Standing:
        self.asked += 1
        return next(self._standings)

    async def identify_neighbour(self, theirs: Address, ours: Address) -> Standing:  # noqa: ARG002 - as the port has it
        return self._next()

    async def is_running_agent(self, theirs: Address, ours: Address) -> bool:  # noqa: ARG002 - as above
        return self._next() is Standing.AGENT

    def identify_peer(self, connection: socket.socket) -> Standing:  # noqa: ARG002 - as above
        return self._next()


@pytest.fixture(params=["unix", "tcp"])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    if request.param == "unix":
        ours, theirs = socket.socketpair(socket.AF_UNIX)
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            theirs = socket.create_connection(listener.getsockname())
            ours, _ = listener.accept()
    with ours, theirs:
        yield Connection(ours)


@pytest.mark.parametrize("certain", [Standing.AGENT, Standing.OWNER, Standing.STRANGER])
async def test_who_could_not_be_found_out_is_asked_for_again(
    connection: Connection, certain: Standing
) -> None:
    answers = Answers(Standing.UNKNOWN, certain)
    assert await connection.identify(answers) is Standing.UNKNOWN
    for _ in range(3):
        assert await connection.identify(answers) is certain
    assert answers.asked == 2


async def test_an_agent_that_was_overlooked_is_found_by_the_next_request(connection: Connection) -> None:
    answers = Answers(Standing.UNKNOWN, Standing.AGENT)
    assert not await connection.is_agent(answers)
    for _ in range(3):
        assert await connection.is_agent(answers)
    assert answers.asked == 2


async def until_gone(connection: Connection, work: Awaitable[str], told: list[str | None]) -> None:
    told.append(await connection.unless_gone(work))
    await asyncio.sleep(0)  # where a cancel that is left over would come
    told.append("went on")


async def test_work_is_given_up_when_the_client_hangs_up(connection: Connection) -> None:
    given_up, told = asyncio.Event(), list[str | None]()

    async def work() -> str:
        try:
            return await asyncio.sleep(60, "late")
        finally:
            given_up.set()

    waiting = asyncio.create_task(until_gone(connection, work(), told))
    await asyncio.sleep(0)
    connection.lose()
    await waiting
    assert given_up.is_set()
    assert told == [None, "went on"]
    await until_gone(connection, work(), told)
    assert told[2:] == [None, "went on"], "it had hung up before"


async def test_work_that_is_done_first_has_its_result_and_no_task(connection: Connection) -> None:
    told: list[str | None] = []
    before = len(asyncio.all_tasks())
    await until_gone(connection, asyncio.sleep(0, "done"), told)
    assert len(asyncio.all_tasks()) == before
    connection.lose()
    assert told == ["done", "went on"]


@pytest.mark.parametrize("gone", [False, True])
async def test_a_request_is_cancelled_when_the_server_stops(connection: Connection, *, gone: bool) -> None:
    told: list[str | None] = []
    waiting = asyncio.create_task(until_gone(connection, asyncio.sleep(60, "late"), told))
    await asyncio.sleep(0)
    if gone:
        connection.lose()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert told == []
