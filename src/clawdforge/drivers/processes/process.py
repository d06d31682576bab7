"""One running agent: its pipes, its pauses, and its end with everything it started."""

import asyncio
import contextlib
import errno
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Executor

from clawdforge.drivers.processes.cgroups import Group
from clawdforge.drivers.processes.containment import NAMESPACES, Active
from clawdforge.drivers.processes.egress import Egress
from clawdforge.drivers.processes.launcher import children, parent_of
from clawdforge.drivers.processes.pipes import Output, Tail, wait_readable
from clawdforge.drivers.processes.survivors import Tag, end_survivors, read_tag
from clawdforge.drivers.processes.tree import (
    descendants,
    has_living_child,
    kill_below,
    send_signal,
    stop_tree,
)
from clawdforge.drivers.processes.users import User
from clawdforge.wire.errors import AgentStartFailed

STDOUT_BUFFER = 256 * 1024  # at twice this we stop reading; then the pipe fills up and the agent waits
KILL_SECONDS = 5.0
WALK_SECONDS = 0.02  # until it is looked again whether a walk through the tree is over
NOT_FOR_USER = (
    "the user {} of this app may not run it; let everybody read and run it and its interpreter, as with"
    " `chmod -R o+rX FOLDER`, or set CLAWDFORGE_AGENT_UIDS=off"
)
SHOW = (
    "name its folder under `readable` in the agent's entry; `clawdforge sandbox show AGENT` says what it sees"
)
MISSING = f"it or its interpreter is missing, or hidden from agents: {SHOW}"
HIDDEN = f"; if that is a file of the machine, it is hidden from agents: {SHOW}"
LACKS = re.compile(
    "no such file|not found|cannot find|modulenotfound|cannot open|could not open", re.IGNORECASE
)
TAIL_SECONDS = 0.5


class AgentProcess:
    """A running agent. Its owner must call `close`, even if the agent has ended by itself."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        active: Active,
        tag: Tag,
        group: Group,
        living: set[int],
        parent: Executor,
    ) -> None:
        """`parent` is the thread that has started the agent, and takes it along when it goes."""
        self._child = child
        self._parent = parent
        self._active = active
        self._tag = tag
        self.group = group
        self.egress: Egress | None = None  # its way out, if it has a network of its own
        self._living = living
        self._tail = Tail()
        self._reading: list[asyncio.ReadTransport] = []
        self._writing: asyncio.WriteTransport | None = None
        self._ended = asyncio.Event()
        self._closer: asyncio.Future[None] | None = None
        self._root = child.pid  # the ancestor of all the agent's processes
        self._pidfd = os.pidfd_open(child.pid)
        self._namespace_fd: int | None = None
        self._pause_lock = threading.Lock()
        self._pauses = 0
        self._stopped = contextlib.ExitStack()
        self._fd_lock = threading.Lock()  # `paused` duplicates one of the two in its own thread
        self._walking = threading.Lock()
        living.add(child.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)
        self.stdin: asyncio.StreamWriter
        self.stdout: Output

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        return self._child.returncode

    def stderr_tail(self) -> str:
        """The end of stderr, and a note if the kernel killed something for using too much memory."""
        text, note = self._tail.text(), self.group.describe_memory_kill()
        return f"{text}\n{note}" if note and text and not text.endswith("\n") else text + note

    def has_child(self) -> bool:
        """Whether the agent's own process, which our launcher has become, has a child. Looks into /proc."""
        with self._walking:
            own = [] if self._ended.is_set() else children(self._root)[:1]
            return any(map(has_living_child, own))

    async def wait(self) -> int:
        await self._ended.wait()
        return self._child.returncode

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Stop all the agent's processes for the time of the block.

        May be used in any thread, and by several at once: the processes go on when the last block has ended.
        """
        with self._pause_lock:
            if not self._pauses:
                self._stopped.enter_context(self._stop())
            self._pauses += 1
        try:
            yield
        finally:
            with self._pause_lock:
                self._pauses -= 1
                if not self._pauses:
                    self._stopped.close()

    @contextlib.contextmanager
    def _stop(self) -> Iterator[None]:
        """The event loop may reap the agent meanwhile, so the block has a pidfd of its own."""
        with self._fd_lock:
            shared = self._pidfd if self._namespace_fd is None else self._namespace_fd
            pidfd = None if self._ended.is_set() else os.dup(shared)
        if pidfd is None:
            yield
            return
        try:
            with stop_tree(self._root, pidfd):
                yield
        finally:
            os.close(pidfd)

    async def close(self, *, eof_grace: float = 0.8, term_grace: float = 0.7) -> None:
        """Close its input, then send SIGTERM, then SIGKILL.

        Nothing of the agent is left when this returns. Where it fails, the next call tries again.
        """
        if self._closer is None or has_failed(self._closer):
            self._closer = asyncio.ensure_future(self._close(eof_grace, term_grace))
        try:
            await asyncio.shield(self._closer)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._kill)
            await self._closer
            raise

    async def _close(self, eof_grace: float, term_grace: float) -> None:
        try:
            await self._end(eof_grace, term_grace)
        finally:
            if self.egress is not None:
                await self.egress.close()
            await self.group.end()

    async def _end(self, eof_grace: float, term_grace: float) -> None:
        loop = asyncio.get_running_loop()
        if self._writing is not None:
            self._writing.close()
        if not await self._wait_ended(eof_grace):
            await asyncio.to_thread(self._ask_to_end)
        if not await self._wait_ended(term_grace):
            deadline = loop.time() + KILL_SECONDS
            await asyncio.to_thread(self._kill)
            while not await self._wait_ended(0.05) and loop.time() < deadline:
                await asyncio.to_thread(self._kill)
        unwatched = (
            (self.returncode or 0) < 0 if self._active not in NAMESPACES else self._namespace_fd is None
        )
        if unwatched or not self._ended.is_set():
            await self._end_leftovers()
        if self._reading:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._tail.ended.wait(), TAIL_SECONDS)
        for transport in self._reading:
            transport.close()
        if self._writing is not None and self._writing.get_write_buffer_size():
            self._writing.abort()
        if self._namespace_fd is not None:
            _reap(self._namespace_fd)
            with self._fd_lock:
                os.close(self._namespace_fd)
                self._namespace_fd = None

    def _ask_to_end(self) -> None:
        """In a thread, like the next: the tree of one that breeds has thousands of processes."""
        with self._walking:
            if not self._ended.is_set():
                send_signal(descendants(self._root), signal.SIGTERM)

    def _kill(self) -> None:
        """In a namespace the kernel ends all with the first process; a keeper ends when it is alone."""
        with self._walking:
            if self._namespace_fd is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._namespace_fd, signal.SIGKILL)
            elif not self._ended.is_set():
                kill_below(self._root)
                if not descendants(self._root):
                    self._child.send_signal(signal.SIGTERM)

    async def _wait_ended(self, within: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._ended.wait()
                if self._namespace_fd is not None:
                    await wait_readable(self._namespace_fd)
                return True
        return False

    async def _end_leftovers(self) -> None:
        """The agent's keeper or bwrap was killed or does not respond: find and end what is left behind."""
        if not self._ended.is_set():
            kill_below(self._root)
            self._child.kill()
            await self._ended.wait()
        await end_survivors(lambda tag: tag == self._tag)
        # By the thread that starts agents: one that is just being started has no tag yet.
        await asyncio.get_running_loop().run_in_executor(self._parent, _end_adopted, self._living, self._tag)

    def _reap(self) -> None:
        """Not while its tree is walked: its number could become somebody else's, who would be killed."""
        loop = asyncio.get_running_loop()
        if not self._walking.acquire(blocking=False):
            loop.remove_reader(self._pidfd)
            loop.call_later(WALK_SECONDS, self._reap)
            return
        try:
            if self._child.poll() is not None:
                loop.remove_reader(self._pidfd)
                self._living.discard(self._child.pid)
                with self._fd_lock:
                    os.close(self._pidfd)
                    self._ended.set()
        finally:
            self._walking.release()

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        stdin, stdout, stderr = self._child.stdin, self._child.stdout, self._child.stderr
        if stdin is None or stdout is None or stderr is None:
            raise AgentStartFailed
        flow = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        self._writing, _ = await loop.connect_write_pipe(lambda: flow, stdin)
        self.stdin = asyncio.StreamWriter(self._writing, flow, None, loop)
        self.stdout = Output(stdout, limit=STDOUT_BUFFER)
        for factory, pipe in (
            (lambda: asyncio.StreamReaderProtocol(self.stdout), stdout),
            (lambda: self._tail, stderr),
        ):
            transport, _ = await loop.connect_read_pipe(factory, pipe)
            self._reading.append(transport)

    async def check_start(self, status: bytes, user: User | None = None) -> None:
        """Raise unless the agent runs: then the launcher's status is `S` and nothing else."""
        if status == b"S":
            if self._active in NAMESPACES:
                self._enter_namespace()
            return
        await self.close(eof_grace=0.2, term_grace=0.0)
        if status.startswith(b"S"):
            number = int(status[1:])
            hint = MISSING if number == errno.ENOENT else os.strerror(number)
            if number == errno.EACCES and user is not None:
                hint = NOT_FOR_USER.format(user.uid)
            raise AgentStartFailed(f"the agent's program could not be run: {hint}")
        reason = self.stderr_tail().strip()[-500:] or "no reason given"
        raise AgentStartFailed(f"the agent could not be contained: {reason}", stderr=self.stderr_tail())

    def hint_at_hidden(self) -> str:
        """What to do when its last words say that it lacks a file; nothing where it sees all of them."""
        return HIDDEN if self._active != "tree" and LACKS.search(self.stderr_tail()) else ""

    def _enter_namespace(self) -> None:
        """Hold the first process of the namespace: once it has ended, the kernel has ended all others too."""
        for pid in children(self._child.pid):
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(pid)
                if parent_of(pid) == self._child.pid:
                    self._root, self._namespace_fd = pid, fd
                    return
                os.close(fd)


def has_failed(closer: asyncio.Future[None]) -> bool:
    """Whether this attempt to end an agent was in vain: then its end has to be tried again."""
    return closer.done() and (closer.cancelled() or closer.exception() is not None)


def _reap(pidfd: int) -> None:
    """When bwrap ends before the first process of its namespace, that process becomes our child."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)


def _end_adopted(living: set[int], tag: Tag) -> None:
    """Kill the orphans of a killed keeper, which became our children.

    What is in our own session, or has another agent's tag, is left alone.
    """
    for pid in children(os.getpid()):
        with contextlib.suppress(OSError):
            if pid not in living and os.getsid(pid) != os.getsid(0) and read_tag(pid) in (None, tag):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
