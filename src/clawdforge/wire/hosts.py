"""The hosts that an agent may reach through the server: a list of names and addresses, and what it means."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Self

Address = IPv4Address | IPv6Address

USUAL_PORTS: Final = frozenset({80, 443})
NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
ENTRY: Final = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
UNICAST: Final = IPv6Network("2000::/3")  # all that is given out; what lies beside it is somebody's own
SPECIAL: Final = IPv4Network("192.0.0.0/24")  # for protocols; a cloud has its metadata there
TRANSLATED: Final = IPv6Network("64:ff9b::/96")  # NAT64: the last 32 bits are an IPv4 address


class BadHost(ValueError):
    """An entry of the list that has no meaning."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the list: a name, all names below one, or addresses."""

    name: str = ""
    below: bool = False
    network: IPv4Network | IPv6Network | None = None
    ports: frozenset[int] = USUAL_PORTS

    @classmethod
    def read(cls, text: str) -> Self:
        """`example.com`, `*.example.com`, `10.0.0.5`, `10.0.0.0/8`, `[::1]`, each perhaps with `:port`."""
        found = ENTRY.fullmatch(text)
        if found is None:
            raise BadHost(f"{text!r} is not a host; write it like example.com or example.com:8443")
        port = int(found["port"]) if found["port"] else None
        if port is not None and not 0 < port < 1 << 16:
            raise BadHost(f"{text!r} is not a host; write its port as a number from 1 to 65535")
        ports = USUAL_PORTS if port is None else frozenset({port})
        host = found["six"] or found["host"].lower().rstrip(".")
        try:
            return cls(network=ip_network(host), ports=ports)
        except ValueError:
            name = host.removeprefix("*.")
        if found["six"] or not NAME.fullmatch(name):
            raise BadHost(f"{text!r} is not a host; write it like example.com or 10.0.0.0/8")
        return cls(name=name, below=host != name, ports=ports)

    def has_name(self, name: str, port: int) -> bool:
        if not self.name or port not in self.ports:
            return False
        return name.endswith(f".{self.name}") if self.below else name == self.name

    def has_address(self, address: Address, port: int) -> bool:
        return self.network is not None and port in self.ports and address in self.network


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """What an agent may reach. An address that is not public must be listed itself, whatever name it has."""

    entries: tuple[Entry, ...]

    @classmethod
    def read(cls, texts: Iterable[str]) -> Self:
        return cls(tuple(Entry.read(text) for text in texts))

    def allows(self, host: str, port: int) -> bool:
        """Whether a host may be asked for, as the agent wrote it."""
        address = read_address(host)
        if address is not None:
            return any(entry.has_address(address, port) for entry in self.entries)
        name = host.lower().rstrip(".")
        return bool(NAME.fullmatch(name)) and any(entry.has_name(name, port) for entry in self.entries)

    def names(self, host: str) -> bool:
        """Whether some port of that host may be reached."""
        return any(self.allows(host, port) for entry in self.entries for port in entry.ports)

    def allows_address(self, address: Address, port: int) -> bool:
        """Whether the address of an allowed name may be connected to."""
        return is_public(address) or any(entry.has_address(address, port) for entry in self.entries)


def read_address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Whether it is nobody's own: no loopback, link-local, private or multicast one, nor one disguised."""
    if isinstance(address, IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in TRANSLATED:
            inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
        if not all(is_public(other) for other in inner if other is not None):
            return False
        if address.ipv4_mapped is not None:
            return True
        if address not in UNICAST and address not in TRANSLATED:
            return False
    elif address in SPECIAL:
        return False
    return address.is_global and not address.is_multicast
