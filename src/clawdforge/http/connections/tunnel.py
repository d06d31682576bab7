"""A connection that has left HTTP: bytes in, bytes out. It stays one guest of the door, counted and timed."""

from typing import Final, Protocol

UPGRADED: Final = "clawdforge.upgraded"
"""What an answer sends when it has taken the connection: nothing can be answered on it any more."""


class TunnelEnd(Protocol):
    """Who understands the bytes."""

    def take(self, data: bytes) -> None:
        """Take what came, and leave it for later: others wait."""
        ...

    def lose(self) -> None:
        """The connection is gone."""
        ...


class Tunnel(Protocol):
    """The connection itself, once `enter` was called."""

    def enter(self, end: TunnelEnd) -> None:
        """Where the connection is gone already, `end` is told so at once."""
        ...

    @property
    def is_choked(self) -> bool:
        """Whether the other side does not take what was written."""
        ...

    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None:
        """Wait until there is room for more, or the connection is gone: the door bounds it."""
        ...

    def expect(self, *, more: bool) -> None:
        """Whether more must come until what came is whole, which the door waits for a while."""
        ...

    def hold_back(self) -> None:
        """Read nothing for now."""
        ...

    def go_on(self) -> None: ...
    def end(self) -> None:
        """Close it when all is sent."""
        ...

    def abort(self) -> None: ...
