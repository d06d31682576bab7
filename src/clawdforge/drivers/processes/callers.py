"""Tells whether the program at the other end of a connection is one of this server's agents.

Everything that the server starts is an agent's or works for one. Such a process is known by its cgroup, by
the tag in its environment, or by its ancestors. None of the three is enough: an agent may throw away its
environment, not every machine has cgroups, and the agents of a killed server have lost their parent.

What cannot be told is told as unknown, never guessed. Where /proc hides the processes of other users
(hidepid), the walk up ends at the first ancestor that is hidden and of another user: an agent has our uid and
cannot gain another, so that ancestor is no agent's.
"""

import asyncio
import errno
import os
import socket
import struct
from pathlib import Path
from typing import Final

from clawdforge.core.ports import Standing
from clawdforge.core.ports.callers import Address
from clawdforge.drivers.processes.cgroups import is_agents_group
from clawdforge.drivers.processes.launcher import parent_of
from clawdforge.drivers.processes.peers import open_peer
from clawdforge.drivers.processes.sockets import find_holders, find_socket, holds
from clawdforge.drivers.processes.survivors import folder_id, read_tag
from clawdforge.drivers.processes.tree import descendants, has_ended

CREDENTIALS: Final = struct.Struct("iII")
ROOT: Final = 0
MOST_ANCESTORS: Final = 1000


class ProcCallers:
    """Looks through /proc, which shows the server's own processes and, to root, all others."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = folder_id(data_dir)
        self._me = os.getpid()
        self._uid = os.geteuid()
        self._one_look = asyncio.Semaphore(1)

    async def identify_neighbour(self, theirs: Address, ours: Address) -> Standing:
        async with self._one_look:  # whoever opens many connections must not take all threads
            return await asyncio.to_thread(self.look_at_neighbour, theirs, ours)

    async def is_running_agent(self, theirs: Address, ours: Address) -> bool:
        async with self._one_look:
            return await asyncio.to_thread(self._looks_like_agent, theirs, ours)

    def _looks_like_agent(self, theirs: Address, ours: Address) -> bool:
        try:
            found = find_socket(theirs, ours)
        except (OSError, ValueError):
            return False
        return found is not None and any(holds(pid, found.inode) for pid in descendants(self._me))

    def look_at_neighbour(self, theirs: Address, ours: Address) -> Standing:
        try:
            found = find_socket(theirs, ours)
        except (OSError, ValueError):
            return Standing.UNKNOWN
        if found is None:
            return Standing.UNKNOWN  # of another network namespace, or gone
        if self._uid not in (found.uid, ROOT):
            # An agent has our uid and cannot gain another.
            return Standing.OWNER if found.uid == ROOT else Standing.STRANGER
        holders = find_holders(found.inode)
        standings = {self._identify(pid) for pid in holders}
        if Standing.AGENT in standings:
            return Standing.AGENT
        # A process that has let go of the socket meanwhile may be another one by now.
        if standings != {Standing.OWNER} or not all(holds(pid, found.inode) for pid in holders):
            return Standing.UNKNOWN
        return Standing.OWNER if found.uid in (self._uid, ROOT) else Standing.STRANGER

    def identify_peer(self, connection: socket.socket) -> Standing:
        try:
            said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        except OSError:
            return Standing.UNKNOWN
        pid, uid, _ = CREDENTIALS.unpack(said)
        if self._uid not in (uid, ROOT):  # an agent has our uid and cannot gain another
            return Standing.OWNER if uid == ROOT else Standing.STRANGER
        with open_peer(connection, pid) as fd:
            if fd is None:
                return Standing.UNKNOWN
            standing = self._identify(pid)
            if has_ended(fd):
                return Standing.UNKNOWN
        if standing is not Standing.OWNER:
            return standing
        return Standing.OWNER if uid in (self._uid, ROOT) else Standing.STRANGER

    def _identify(self, pid: int) -> Standing:
        """OWNER here means only that it is no agent's."""
        if pid == self._me:
            return Standing.OWNER
        current: int | None = pid
        for _ in range(MOST_ANCESTORS):
            if current is None:
                return Standing.UNKNOWN
            if current == self._me or self._is_marked(current):
                return Standing.AGENT
            if current <= 1:
                return Standing.OWNER
            parent = parent_of(current)
            if parent is None and _is_of_another_user(current):
                return Standing.OWNER
            current = parent
        return Standing.UNKNOWN

    def _is_marked(self, pid: int) -> bool:
        tag = read_tag(pid)
        return (tag is not None and tag.folder == self._folder) or is_agents_group(pid, self._folder)


def _is_of_another_user(pid: int) -> bool:
    """Whether the kernel refuses a signal; this is told of processes that /proc hides, too."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return False
