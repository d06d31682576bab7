"""What the surfaces ask about the program at the other end of a connection. Implemented in `drivers`."""

import socket
from enum import StrEnum
from typing import Protocol, TypeAlias

Address: TypeAlias = tuple[str, int]


class Standing(StrEnum):
    """Who calls, as far as the kernel tells."""

    AGENT = "agent"  # an agent of this server, or anything that one started
    OWNER = "owner"  # a program of the server's own user, or of root
    STRANGER = "stranger"  # a program of another user of this machine
    UNKNOWN = "unknown"  # it could not be found out: it must not be trusted


class Callers(Protocol):
    async def identify_neighbour(self, theirs: Address, ours: Address) -> Standing:
        """The program that holds the other end of a TCP connection on this machine.

        Takes many milliseconds, since it looks at every process: ask once per connection.
        """
        ...

    async def is_running_agent(self, theirs: Address, ours: Address) -> bool:
        """Whether a process below the server holds the other end of a TCP connection.

        Quicker than `identify_neighbour`, and it says nothing about anybody else.
        """
        ...

    def identify_peer(self, connection: socket.socket) -> Standing:
        """The program that connected to a unix socket. Takes microseconds."""
        ...
