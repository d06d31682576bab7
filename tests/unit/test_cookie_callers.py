"""A cookie is no secret from agents, so whoever sends one must be known not to be an agent."""

import socket
from collections.abc import Iterator

import pytest

from clawdforge.core.ports import Standing
from clawdforge.core.ports.callers import Address
from clawdforge.http.connections import connection as module
from clawdforge.http.connections.connection import LOOKS, Connection


class Callers:
    """Answers as it was told, one answer for each look."""

    def __init__(self, *answers: Standing) -> None:
        self.answers = list(answers)
        self.looks = 0

    async def identify_neighbour(self, theirs: Address, ours: Address) -> Standing:
        assert theirs[1] != ours[1]
        self.looks += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def is_running_agent(self, theirs: Address, ours: Address) -> bool:
        raise AssertionError(f"this look fails open: {theirs} {ours}")

    def identify_peer(self, connection: socket.socket) -> Standing:
        raise AssertionError(f"this is no unix socket: {connection}")


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The server's end of a connection on loopback."""
    monkeypatch.setattr(module, "LOOK_AGAIN_SECS", 0)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        accepted = listener.accept()[0]
        with accepted:
            yield accepted


@pytest.mark.parametrize(
    ("standing", "refused"),
    [(Standing.AGENT, True), (Standing.UNKNOWN, True), (Standing.OWNER, False), (Standing.STRANGER, False)],
)
async def test_only_who_is_known_not_to_be_an_agent_may_use_a_cookie(
    end: socket.socket, standing: Standing, refused: bool
) -> None:
    """Unknown is what an agent is that has its socket on the way from one process to another."""
    assert await Connection(end).may_be_agent(Callers(standing)) is refused


async def test_what_was_a_matter_of_a_moment_is_looked_at_again(end: socket.socket) -> None:
    callers = Callers(Standing.UNKNOWN, Standing.OWNER)
    assert not await Connection(end).may_be_agent(callers)
    assert callers.looks == 2


async def test_a_certain_answer_holds_for_the_connection(end: socket.socket) -> None:
    callers, connection = Callers(Standing.OWNER), Connection(end)
    for _ in range(5):
        assert not await connection.may_be_agent(callers)
    assert callers.looks == 1


async def test_it_is_not_looked_for_ever(end: socket.socket) -> None:
    callers = Callers(Standing.UNKNOWN)
    assert await Connection(end).may_be_agent(callers)
    assert callers.looks == LOOKS


async def test_whoever_hung_up_is_refused() -> None:
    """An agent that sends a request and closes its socket at once is found nowhere."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection(listener.getsockname()).close()
        accepted = listener.accept()[0]
    accepted.close()
    connection = Connection(accepted)
    assert connection.is_from_here


async def test_another_machine_is_not_looked_for() -> None:
    """An address that cannot be bound here; 192.0.2.0/24 is nobody's."""

    class Far:
        family = socket.AF_INET

        def getpeername(self) -> tuple[str, int]:
            return "192.0.2.1", 5

    callers = Callers(Standing.UNKNOWN)
    assert not await Connection(Far()).may_be_agent(callers)  # type: ignore[arg-type]
    assert not callers.looks
