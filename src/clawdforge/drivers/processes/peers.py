"""Opens the process at the other end of a unix socket, and never another that has its number by now.

Whoever connects can end and leave the connection to others. Its number is then free, and would stand for
whatever program gets it next.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from clawdforge.drivers.processes.sockets import find_peer, holds
from clawdforge.drivers.processes.survivors import open_pidfd

SO_PEERPIDFD: Final = 77
"""Since Linux 6.5: a pidfd of the process that connected, whatever became of its number."""


@contextmanager
def open_peer(connection: socket.socket, pid: int) -> Iterator[int | None]:
    """A pidfd of the process that connected and had this number then; None when that cannot be told."""
    try:
        fd = connection.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:  # it is gone
            yield None
            return
        with _open_holder(connection, pid) as found:
            yield found
        return
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _open_holder(connection: socket.socket, pid: int) -> Iterator[int | None]:
    """On older kernels: the process with this number, if it holds the other end itself."""
    with open_pidfd(pid) as fd:
        try:
            inode = find_peer(connection)
        except OSError:  # a kernel that does not tell
            inode = None
        yield fd if inode is not None and holds(pid, inode) else None
