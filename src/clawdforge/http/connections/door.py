"""The door: how many connections may be open, and how long each may keep the server waiting."""

import asyncio
import ipaddress
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

log = logging.getLogger(__name__)

EVERY_SECS: Final = 1.0
QUIET_SECS: Final = 10.0
"""So long there is no second warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorLimits:
    """`per_peer` is for one address, or one network of 64 bits where addresses have 128; `silent` for those
    who have not said what they want."""

    connections: int = 1024
    silent: int = 1024
    per_peer: int = 512
    header_secs: float = 10.0
    body_secs: float = 20.0
    send_secs: float = 120.0
    idle_secs: float = 5.0


class Guest(Protocol):
    """A connection. On the operator's socket it has no `peer` and is not counted: they always get in."""

    @property
    def peer(self) -> str | None: ...
    @property
    def is_known(self) -> bool:
        """Whether it has shown a credential."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        ...

    def is_overdue(self, limits: DoorLimits, now: float) -> bool: ...
    def turn_out(self) -> None: ...


class Door:
    """Lets connections in up to the limits. Where there is no room, those that nobody needs make some.

    These are the oldest that have shown no credential, then the oldest without a request. So a crowd of
    strangers that hold connections open keeps nobody out who has something to ask.
    """

    def __init__(self, limits: DoorLimits) -> None:
        self.limits = limits
        self._guests: dict[Guest, None] = {}  # oldest first
        self._by_peer: dict[str, dict[Guest, None]] = {}
        self._uncounted: set[Guest] = set()
        self._warned_at = float("-inf")

    @property
    def count(self) -> int:
        return len(self._guests)

    def admit(self, guest: Guest) -> bool:
        """False when there is no room. The guest is to call `leave` in the end, whatever this says."""
        if guest.peer is None:
            self._uncounted.add(guest)
            return True
        neighbours = self._by_peer.get(guest.peer, {})
        if len(neighbours) >= self.limits.per_peer and not self._make_room(neighbours):
            self._warn("one address", "MAX_CONNECTIONS_PER_PEER")
            return False
        if self.count >= self.limits.connections and not self._make_room(self._guests):
            self._warn("the server", "MAX_CONNECTIONS")
            return False
        self._guests[guest] = None
        self._by_peer.setdefault(guest.peer, {})[guest] = None
        return True

    def leave(self, guest: Guest) -> None:
        self._uncounted.discard(guest)
        if guest.peer is None or guest not in self._guests:
            return
        del self._guests[guest]
        neighbours = self._by_peer[guest.peer]
        del neighbours[guest]
        if not neighbours:
            del self._by_peer[guest.peer]

    async def watch(self) -> None:
        """Turn out whoever keeps the server waiting for too long, for as long as this runs."""
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(EVERY_SECS)
            for _ in self.look(clock()):
                await asyncio.sleep(0)  # who came together is overdue together, and each takes a moment

    def look(self, now: float) -> Iterator[Guest]:
        """Those who are turned out, one by one."""
        for guest in [*self._guests, *self._uncounted]:
            if guest.is_overdue(self.limits, now):
                guest.turn_out()
                yield guest

    def _make_room(self, among: dict[Guest, None]) -> bool:
        unknown = next((guest for guest in among if not guest.is_known), None)
        chosen = unknown or next((guest for guest in among if guest.is_idle), None)
        if chosen is None:
            return False
        self.leave(chosen)
        chosen.turn_out()
        return True

    def _warn(self, who: str, setting: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= QUIET_SECS:
            self._warned_at = now
            log.warning(
                "connections are refused: %s has as many as CLAWDFORGE_%s allows, all in use", who, setting
            )


def peer_of(address: str) -> str:
    """What one limit is for. Whoever has one address of 128 bits usually has the network around it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
