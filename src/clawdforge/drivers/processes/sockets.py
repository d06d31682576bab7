"""Finds the socket at the other end of a connection on this machine, and who holds it.

The kernel is asked through netlink (`sock_diag`); descriptors are looked up in /proc.
"""

import ipaddress
import os
import socket
import struct
from typing import Final, NamedTuple

NETLINK_SOCK_DIAG: Final = 4
SOCK_DIAG_BY_FAMILY: Final = 20
NLM_F_REQUEST: Final = 1
NO_COOKIE: Final = 0xFFFFFFFF
ANY_STATE: Final = 0xFFFFFFFF
LISTENING: Final = 10
HEADER: Final = struct.Struct("=IHHII")
REQUEST: Final = struct.Struct("=BBBBI")
ENDS: Final = struct.Struct("!HH16s16s")
REST: Final = struct.Struct("=III")
"""What follows the ends in a request and in an answer: the interface and the cookie."""

ANSWER_HEAD: Final = struct.Struct("=BBBB")
ANSWER_TAIL: Final = struct.Struct("=IIIII")
"""When it expires, both queues, the owner's uid, the inode."""

UNIX_REQUEST: Final = struct.Struct("=BBHIIIII")
UNIX_ANSWER: Final = struct.Struct("=BBBBIII")
ATTRIBUTE: Final = struct.Struct("=HH")
SHOW_PEER: Final = 4
PEER: Final = 2

WAIT_SECS: Final = 2.0


class Held(NamedTuple):
    """A socket as the kernel knows it: what its descriptors are called, and who made it."""

    inode: int
    uid: int


def find_socket(local: tuple[str, int], remote: tuple[str, int]) -> Held | None:
    """The connected TCP socket with these two ends in our network namespace; None when there is none."""
    source, target = _plain(local[0]), _plain(remote[0])
    if source.version != target.version:
        return None
    family = socket.AF_INET if source.version == 4 else socket.AF_INET6
    body = REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, ANY_STATE)
    body += ENDS.pack(local[1], remote[1], source.packed.ljust(16, b"\0"), target.packed.ljust(16, b"\0"))
    body += REST.pack(0, NO_COOKIE, NO_COOKIE)
    return _read(_ask_kernel(body), (source, local[1]), (target, remote[1]))


def find_peer(connection: socket.socket) -> int | None:
    """The inode of the other end of a unix socket; None when nobody holds it, or not in our namespace."""
    inode = os.fstat(connection.fileno()).st_ino
    body = UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, ANY_STATE, inode, SHOW_PEER, NO_COOKIE, NO_COOKIE)
    answer = _ask_kernel(body)
    if len(answer) < HEADER.size or HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None  # an error: no such socket
    at = HEADER.size + UNIX_ANSWER.size
    while at + ATTRIBUTE.size <= len(answer):
        size, kind = ATTRIBUTE.unpack_from(answer, at)
        if kind == PEER:
            (found,) = struct.unpack_from("=I", answer, at + ATTRIBUTE.size)
            return found or None
        at += max(ATTRIBUTE.size, (size + 3) // 4 * 4)
    return None


def _ask_kernel(body: bytes) -> bytes:
    head = HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(WAIT_SECS)
        kernel.sendto(head + body, (0, 0))
        return kernel.recv(4096)


def _read(
    answer: bytes,
    local: tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int],
    remote: tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int],
) -> Held | None:
    if len(answer) < HEADER.size or HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None  # an error: no such socket
    at = HEADER.size
    family, state, _, _ = ANSWER_HEAD.unpack_from(answer, at)
    at += ANSWER_HEAD.size
    source_port, target_port, source, target = ENDS.unpack_from(answer, at)
    _, _, _, uid, inode = ANSWER_TAIL.unpack_from(answer, at + ENDS.size + REST.size)
    size = 4 if family == socket.AF_INET else 16
    ends = ((_plain(source[:size]), source_port), (_plain(target[:size]), target_port))
    # Where no connection fits, the kernel answers with a listener on that port.
    if state == LISTENING or ends != (local, remote) or inode == 0:
        return None
    return Held(inode, uid)


def _plain(address: str | bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address, and of an IPv4 address in the clothes of IPv6 the IPv4 address."""
    text = address.partition("%")[0] if isinstance(address, str) else address
    found = ipaddress.ip_address(text)
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def find_holders(inode: int) -> list[int]:
    """The processes that have this socket open, as far as we may look."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and holds(int(name), inode)]  # noqa: PTH208 -- pathlib takes thrice as long


def holds(pid: int, inode: int) -> bool:
    """Asked of every process below the server for a request that agents must not send, so it is plain."""
    folder, wanted = f"/proc/{pid}/fd", f"socket:[{inode}]"
    try:
        names = os.listdir(folder)  # noqa: PTH208 -- as above
    except OSError:  # it ended, or is not ours to look at
        return False
    return any(_read_link(f"{folder}/{name}") == wanted for name in names)


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 -- as above
    except OSError:
        return None
