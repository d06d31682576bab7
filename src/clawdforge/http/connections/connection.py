"""What is known of a connection besides its requests: who is at its other end, asked until it is certain."""

import asyncio
import errno
import socket
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.types import Message

from clawdforge.core.ports import Callers, Standing
from clawdforge.http.connections.tunnel import Tunnel
from clawdforge.http.connections.waiting import unless_disconnected
from clawdforge.http.settings import HttpSettings

KEY: Final = "connection"
LOOKS: Final = 3
LOOK_AGAIN_SECS: Final = 0.05
T = TypeVar("T")


class Connection:
    """One connection of a client. Its requests come one after the other, so a certain answer holds for all.

    What could not be found out is asked again with the next request: it may have been a matter of a moment.
    """

    def __init__(self, end: socket.socket, tunnel: Tunnel | None = None) -> None:
        """`tunnel` is what it becomes when it leaves HTTP."""
        self.is_unix = end.family == socket.AF_UNIX
        self.is_known = False  # whether a request of it has shown a credential
        self.is_gone = False  # whether the client has hung up
        self._at_work: set[asyncio.Task[Any]] = set()  # what is given up when it does
        self.tunnel = tunnel
        self._end = end
        self._is_from_here: bool | None = None
        self._standing = Standing.UNKNOWN
        self._is_agent = False

    def lose(self) -> None:
        """The client has hung up."""
        self.is_gone = True
        for task in self._at_work:
            task.cancel()

    async def unless_gone(self, work: Awaitable[T]) -> T | None:
        """The result of some work, or None when the client hangs up first. It needs no task of its own: that
        of the request is cancelled for a moment, as a timeout does it."""
        task = asyncio.current_task()
        if task is None or self.is_gone:
            return await unless_disconnected(_receive_nothing, work)
        if self.tunnel is not None:
            self.tunnel.go_on()  # who does not read cannot hear that it hangs up
        before = task.cancelling()
        self._at_work.add(task)
        try:
            return await work
        except asyncio.CancelledError:
            if not self.is_gone or task.cancelling() > before + 1:
                raise  # also when the server stops
            return None
        finally:
            self._at_work.discard(task)
            if self.is_gone:
                task.uncancel()

    async def identify(self, callers: Callers) -> Standing:
        if self._standing is Standing.UNKNOWN:
            self._standing = await self._ask(callers)
        return self._standing

    async def is_agent(self, callers: Callers) -> bool:
        """Whether an agent that runs now is known to be there. Cheaper than to find out who else it is."""
        if self.is_unix:
            return await self.identify(callers) is Standing.AGENT
        if not self._is_agent:  # it may also not have been found
            try:
                theirs, ours = self._end.getpeername()[:2], self._end.getsockname()[:2]
            except OSError:  # it has hung up
                return False
            self._is_agent = await callers.is_running_agent(theirs, ours)
        return self._is_agent

    async def may_be_agent(self, callers: Callers) -> bool:
        """Whether an agent is there, or somebody on this machine of whom that cannot be ruled out.

        An agent can hide for a moment: a socket on its way from one process to another is in none. What looks
        the same by chance (a browser that is just starting a process) is gone at the next look.
        """
        if not self.is_from_here:
            return False
        for look in range(LOOKS):
            await asyncio.sleep(LOOK_AGAIN_SECS if look else 0)
            standing = await self.identify(callers)
            if standing is not Standing.UNKNOWN:
                return standing is Standing.AGENT
        return True

    @property
    def is_from_here(self) -> bool:
        """Whether the other end has an address of this machine; also where it can no longer be asked."""
        if self._is_from_here is None:
            self._is_from_here = self.is_unix or _is_own_address(self._end)
        return self._is_from_here

    async def _ask(self, callers: Callers) -> Standing:
        try:
            if self.is_unix:
                return callers.identify_peer(self._end)
            theirs, ours = self._end.getpeername()[:2], self._end.getsockname()[:2]
        except OSError:  # it has hung up
            return Standing.UNKNOWN
        return await callers.identify_neighbour(theirs, ours)


def is_on_unix_socket(request: Request) -> bool:
    connection = _connection_of(request)
    return connection is not None and connection.is_unix


def note_known(request: Request) -> None:
    """From now on this connection is not among the first that have to make room for others."""
    connection = _connection_of(request)
    if connection is not None:
        connection.is_known = True


def find_tunnel(request: Request) -> Tunnel | None:
    """What this request's connection can become; None where it did not come through a socket of ours."""
    connection = _connection_of(request)
    return None if connection is None else connection.tunnel


async def identify_caller(request: Request) -> Standing:
    """Who sends this request; unknown where it did not come through a socket of ours."""
    settings: HttpSettings = request.app.state.settings
    connection = _connection_of(request)
    if connection is None or settings.callers is None:
        return Standing.UNKNOWN
    return await connection.identify(settings.callers)


async def may_be_agent(request: Request) -> bool:
    """Fails shut, where `is_from_agent` fails open: for what is no secret from agents, such as a cookie."""
    settings: HttpSettings = request.app.state.settings
    connection = _connection_of(request)
    if connection is None or settings.callers is None:
        return False
    return await connection.may_be_agent(settings.callers)


async def is_from_agent(request: Request) -> bool:
    settings: HttpSettings = request.app.state.settings
    connection = _connection_of(request)
    if connection is None or settings.callers is None:
        return False
    return await connection.is_agent(settings.callers)


async def unless_gone(request: Request, work: Awaitable[T]) -> T | None:
    """The result of some work, or None when the client of this request hangs up first."""
    connection = _connection_of(request)
    if connection is None:
        return await unless_disconnected(request.receive, work)
    return await connection.unless_gone(work)


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}


def _connection_of(request: Request) -> Connection | None:
    found = request.scope.get("state", {}).get(KEY)
    return found if isinstance(found, Connection) else None


def _is_own_address(end: socket.socket) -> bool:
    """Only an address of this machine can be bound here."""
    try:
        host, _, *scope = end.getpeername()
        with socket.socket(end.family, socket.SOCK_STREAM) as trial:
            trial.bind((host, 0, *scope))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True
