"""Starts agents in containment, and ends them together with everything they started."""

import asyncio
import contextlib
import errno
import itertools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clawdforge.drivers.processes.cgroups import Group, Groups
from clawdforge.drivers.processes.containment import Active, AgentFolders, Containment, Limits
from clawdforge.drivers.processes.held_paths import HeldPaths, PathChanged
from clawdforge.drivers.processes.launcher import children, parent_of
from clawdforge.drivers.processes.pipes import Output, Tail, read_all, run_to_end, status_pipe, wait_readable
from clawdforge.drivers.processes.survivors import TAG, Tag, end_survivors, folder_id, read_tag
from clawdforge.drivers.processes.tree import descendants, kill_below, send_signal, stop_tree
from clawdforge.wire.errors import AgentNotInstalled, AgentStartFailed, WorkspaceChanged

STDOUT_BUFFER = 256 * 1024  # at twice this we stop reading; then the pipe fills up and the agent waits
START_SECONDS = 20.0
KILL_SECONDS = 5.0
TAIL_SECONDS = 0.5


class AgentProcess:
    """A running agent. Its owner must call `close`, even if the agent has ended by itself."""

    def __init__(
        self, child: subprocess.Popen[bytes], active: Active, tag: Tag, group: Group, living: set[int]
    ) -> None:
        self._child = child
        self._active = active
        self._tag = tag
        self.group = group
        self._memory_kill = ""
        self._living = living
        self._tail = Tail()
        self._reading: list[asyncio.ReadTransport] = []
        self._writing: asyncio.WriteTransport | None = None
        self._ended = asyncio.Event()
        self._closer: asyncio.Future[None] | None = None
        self._root = child.pid  # the ancestor of all the agent's processes
        self._pidfd = os.pidfd_open(child.pid)
        self._namespace_fd: int | None = None
        self._fd_lock = threading.Lock()  # `paused` duplicates one of the two in its own thread
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
        text, note = self._tail.text(), self._memory_kill or self.group.describe_memory_kill()
        return f"{text}\n{note}" if note and text and not text.endswith("\n") else text + note

    async def wait(self) -> int:
        await self._ended.wait()
        return self._child.returncode

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all the agent's processes for the time of the block.

        May be used in any thread: the event loop may reap the agent meanwhile, so the block has its own
        pidfd.
        """
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

        Nothing of the agent is left when this returns.
        """
        if self._closer is None:
            self._closer = asyncio.ensure_future(self._close(eof_grace, term_grace))
        try:
            await asyncio.shield(self._closer)
        except asyncio.CancelledError:
            self._kill()
            await self._closer
            raise

    async def _close(self, eof_grace: float, term_grace: float) -> None:
        try:
            await self._end(eof_grace, term_grace)
        finally:
            await self.group.end()

    async def _end(self, eof_grace: float, term_grace: float) -> None:
        loop = asyncio.get_running_loop()
        if self._writing is not None:
            self._writing.close()
        if not await self._wait_ended(eof_grace):
            send_signal(descendants(self._root), signal.SIGTERM)
        if not await self._wait_ended(term_grace):
            deadline = loop.time() + KILL_SECONDS
            self._kill()
            while not await self._wait_ended(0.05) and loop.time() < deadline:
                self._kill()
        unwatched = (self.returncode or 0) < 0 if self._active == "tree" else self._namespace_fd is None
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

    def _kill(self) -> None:
        """In a namespace the kernel ends all with the first process; a keeper ends when it is alone."""
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
        _end_adopted(self._living, self._tag)

    def _reap(self) -> None:
        if self._child.poll() is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            self._living.discard(self._child.pid)
            self._memory_kill = self.group.describe_memory_kill()
            with self._fd_lock:
                os.close(self._pidfd)
                self._ended.set()

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

    async def check_start(self, status: bytes) -> None:
        """Raise unless the agent runs: then the launcher's status is `S` and nothing else."""
        if status == b"S":
            if self._active != "tree":
                self._enter_namespace()
            return
        await self.close(eof_grace=0.2, term_grace=0.0)
        if status.startswith(b"S"):
            number = int(status[1:])
            hint = "its interpreter is missing" if number == errno.ENOENT else os.strerror(number)
            raise AgentStartFailed(f"the agent's program could not be run: {hint}")
        reason = self.stderr_tail().strip()[-500:] or "no reason given"
        raise AgentStartFailed(f"the agent could not be contained: {reason}", stderr=self.stderr_tail())

    def _enter_namespace(self) -> None:
        """Hold the first process of the namespace: once it has ended, the kernel has ended all others too."""
        for pid in children(self._child.pid):
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(pid)
                if parent_of(pid) == self._child.pid:
                    self._root, self._namespace_fd = pid, fd
                    return
                os.close(fd)


class Spawner:
    """Starts agents in one data folder."""

    def __init__(
        self,
        containment: Containment,
        data_dir: Path,
        boot_id: str,
        *,
        limits: Limits | None = None,
        groups: Groups | None = None,
    ) -> None:
        self.containment = containment
        self._groups = groups
        self._data_dir = data_dir
        self._real_data_dir = data_dir.resolve()
        self._boot_id = boot_id
        self._folder = folder_id(data_dir)
        self._limits = limits or Limits()
        self._living: set[int] = set()
        self._numbers = itertools.count(1)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        home: Path,
        env: Mapping[str, str],
        tag: str,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        private_tmp: bool = False,
        sandbox: str | None = None,
        beside: AgentProcess | None = None,
    ) -> AgentProcess:
        """Start a program. `tag` is the session's id; with `beside`, it counts towards that agent's limits.

        Call it from the main thread only: a death signal is sent when the thread ends, not the process.
        """
        folders = AgentFolders(
            data_dir=self._data_dir,
            home=self._find_real(home),
            workspace=self._find_real(cwd),
            readable=tuple(readable),
            writable=tuple(writable),
            private_tmp=private_tmp,
        )
        process, status = self._start(argv, folders, env, tag, sandbox, beside)
        try:
            await run_to_end(process.connect())
            async with asyncio.timeout(START_SECONDS):  # Python 3.11's wait_for may lose a cancel
                said = await read_all(status)
        except TimeoutError:
            said = b""
        except BaseException:
            await process.close(eof_grace=0.0, term_grace=0.0)
            raise
        finally:
            os.close(status)
        await process.check_start(said)
        return process

    def _start(
        self,
        argv: Sequence[str],
        folders: AgentFolders,
        env: Mapping[str, str],
        session: str,
        sandbox: str | None,
        beside: AgentProcess | None,
    ) -> tuple[AgentProcess, int]:
        """The process and its launcher's status pipe. Blocks for the 2 ms that a vfork and exec take."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("agents are spawned from the main thread only")
        active = self.containment.choose(sandbox)
        command = [find_program(argv[0], env), *argv[1:]]
        tag = Tag(self._folder, self._boot_id, session, str(next(self._numbers)))
        group = self._make_group(tag) if beside is None else beside.group.share()
        try:
            with (
                HeldPaths((folders.workspace, folders.home, *folders.writable)) as held,
                group.open_join_fds() as join_fds,
                status_pipe() as (status, other_end),
            ):
                wrapped = self.containment.wrap(
                    command,
                    folders=folders,
                    sources=held.sources,
                    status_fd=other_end,
                    limits=self._limits,
                    join_fds=join_fds,
                    sandbox=sandbox,
                )
                child = subprocess.Popen(
                    wrapped,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    cwd=held.sources[folders.workspace],
                    env={**env, TAG: str(tag)},
                    pass_fds=(other_end, *join_fds, *held.fds),
                    start_new_session=True,
                )
                return _watch(child, active, tag, group, self._living), status
        except PathChanged as error:
            group.remove()
            raise WorkspaceChanged(
                f"{error} was replaced by a link since the session was made; put the folder back, or start a"
                " new session there"
            ) from error
        except FileNotFoundError as error:
            group.remove()
            raise AgentStartFailed(
                f"{error.filename} does not exist; make it again, or start a new session"
            ) from error
        except (OSError, ValueError) as error:  # the second for a NUL in an argument or a variable
            group.remove()
            raise AgentStartFailed(f"the agent could not be started: {error}") from error

    def _find_real(self, path: Path) -> Path:
        """Links on the way to the data folder are the operator's own; nowhere else may there be any."""
        if path.is_relative_to(self._data_dir):
            return self._real_data_dir / path.relative_to(self._data_dir)
        return path

    def _make_group(self, tag: Tag) -> Group:
        """Fails where no group can be made: limits that worked at the start are never left out silently."""
        try:
            return Group() if self._groups is None else self._groups.make(tag.spawn)
        except OSError as error:
            raise AgentStartFailed(
                f"the agent's control group could not be made: {error}; restart the server"
            ) from error

    async def end_orphans(self) -> int:
        """At the server's start: end the agents that a dead server of this data folder left behind."""
        count = await end_survivors(lambda tag: tag.folder == self._folder and tag.boot != self._boot_id)
        if self._groups is not None:
            await asyncio.to_thread(self._groups.end_leftovers)
        return count


def find_program(name: str, env: Mapping[str, str]) -> str:
    """The program's path in that environment.

    Raises AgentNotInstalled, or AgentStartFailed with the reason.
    """
    found = shutil.which(name, path=env.get("PATH"))
    if found is not None:
        return os.path.abspath(found)  # noqa: PTH100 -- resolve() would follow links that multi-call programs need
    if os.sep in name and Path(name).exists():
        raise AgentStartFailed(
            f"{name} is not an executable file; run `chmod +x {name}`, or correct the agent's command"
        )
    raise AgentNotInstalled(f"{name} is not installed; install it, or add its folder to the server's PATH")


def _watch(
    child: subprocess.Popen[bytes], active: Active, tag: Tag, group: Group, living: set[int]
) -> AgentProcess:
    """Kill a child that cannot be watched because no descriptors are left."""
    try:
        return AgentProcess(child, active, tag, group, living)
    except OSError:
        with child:
            child.kill()
        raise


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
