"""Commands that an agent runs through its client: contained like the agent itself, output bounded."""

import asyncio
import re
import shlex
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clawdforge.drivers.acp.files import RESOURCE_NOT_FOUND, WorkspaceFiles
from clawdforge.drivers.acp.stdio import READ_BYTES
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.jsonrpc.rpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentError, WorkspaceChanged
from clawdforge.wire.json_bounds import is_larger

MAX_TERMINALS: Final = 32
OUTPUT_BYTES: Final = 1024 * 1024
MAX_OUTPUT_BYTES: Final = 8 * 1024 * 1024
DRAIN_SECONDS: Final = 0.5
MAX_WORDS: Final = 10_000
MAX_WORD_CHARS: Final = 1024 * 1024
"""How many arguments and variables a command may have, and how long all of them may be together."""
MAX_NAME_CHARS: Final = 100
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Spawn = Callable[[tuple[str, ...]], Awaitable[AgentProcess]]


@dataclass(frozen=True, slots=True)
class Order:
    """A command that was checked and is ready to be run, once it is permitted."""

    argv: tuple[str, ...]
    cwd: Path
    shown: str
    limit: int


class _Terminal:
    def __init__(self, process: AgentProcess, limit: int) -> None:
        self.process = process
        self._limit = limit
        self._tail = bytearray()
        self._lost = False
        self._pump = asyncio.create_task(self._read(), name="terminal output")

    async def _read(self) -> None:
        while chunk := await self.process.stdout.read(READ_BYTES):
            self._tail += chunk
            # Cut rarely: moving the tail for each chunk would cost more than reading it.
            if len(self._tail) > 2 * self._limit + 65_536:
                self._trim()

    def _trim(self) -> None:
        if len(self._tail) > self._limit:
            self._lost = True
            del self._tail[: len(self._tail) - self._limit]

    @property
    def size(self) -> int:
        """How many bytes of output are kept."""
        return min(len(self._tail), self._limit)

    def output(self) -> Json:
        self._trim()
        start = 0
        while self._lost and start < min(3, len(self._tail)) and self._tail[start] & 0xC0 == 0x80:
            start += 1
        text = self._tail[start:].decode("utf-8", "replace")
        status = self.status()
        more = {} if status is None else {"exitStatus": status}
        return {"output": text, "truncated": self._lost, **more}

    def status(self) -> Json | None:
        code = self.process.returncode
        if code is None:
            return None
        # The programs that contain a command say 128 + n for signal n, as a shell does.
        number = -code if code < 0 else code - 128
        if code < 0 or number in signal.Signals.__members__.values():
            return {"exitCode": None, "signal": signal.Signals(number).name}
        return {"exitCode": code, "signal": None}

    async def wait(self) -> Json:
        await self.process.wait()
        await asyncio.wait({self._pump}, timeout=DRAIN_SECONDS)
        return self.status() or {"exitCode": None, "signal": None}

    async def end(self) -> None:
        await self.process.close(eof_grace=0.0)  # its input has ended long ago
        await asyncio.wait({self._pump}, timeout=DRAIN_SECONDS)
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)


class Terminals:
    """The terminals of one agent."""

    def __init__(self, spawn: Spawn, files: WorkspaceFiles, cwd: Path) -> None:
        self._spawn = spawn
        self._files = files
        self._cwd = cwd
        self._count = 0
        self._starting = 0
        self._ended = 0  # how often all were ended; what was being started meanwhile must go too
        self._closed = False
        self._open: dict[str, _Terminal] = {}
        self._change = threading.Condition()  # of the next two
        self._pauses = 0
        self._spawning = 0  # those that may run already, and cannot be stopped yet
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []  # for the end of pauses

    @property
    def cwd(self) -> Path:
        """Where a command runs that names no folder."""
        return self._cwd

    def check_order(self, params: Json) -> Order:
        """What `terminal/create` wants. Without arguments the command is a line for the shell."""
        command, arguments = params.get("command"), params.get("args") or []
        _check_size(command, arguments, params.get("env"))
        if not isinstance(command, str) or not command or "\0" in command:
            raise RpcError(INVALID_PARAMS, "command must be a string")
        if not isinstance(arguments, list) or not all(
            isinstance(a, str) and "\0" not in a for a in arguments
        ):
            raise RpcError(INVALID_PARAMS, "args must be a list of strings")
        cwd, limit = params.get("cwd"), params.get("outputByteLimit")
        if not isinstance(limit, int) or limit < 0:
            limit = OUTPUT_BYTES
        folder = self._files.find_folder(cwd) if isinstance(cwd, str) else self._cwd
        line = 'cd -- "$1" && shift && exec 2>&1 || exit 126\n' + ('exec "$@"' if arguments else command)
        run = ("/bin/sh", "-c", line, "sh", str(folder), *([command, *arguments] if arguments else ()))
        return Order(
            # Its variables are set inside of what contains it: LD_PRELOAD must not reach the wrapper.
            ("/usr/bin/env", *_read_variables(params.get("env")), *run),
            folder,
            shlex.join((command, *arguments)) if arguments else command,
            min(limit, MAX_OUTPUT_BYTES),
        )

    async def create(self, order: Order) -> Json:
        if self._closed or len(self._open) + self._starting >= MAX_TERMINALS:
            raise RpcError(INTERNAL_ERROR, f"more than {MAX_TERMINALS} terminals; release some first")
        self._starting += 1
        ended = self._ended
        try:
            await self._wait_for_pauses()
            try:
                return await self._start(order, ended)
            finally:
                with self._change:
                    self._spawning -= 1
                    self._change.notify_all()
        finally:
            self._starting -= 1

    async def _start(self, order: Order, ended: int) -> Json:
        try:
            process = await self._spawn(order.argv)
        except (AgentError, WorkspaceChanged, OSError) as error:
            raise RpcError(INTERNAL_ERROR, f"the command did not start: {error}") from error
        if ended != self._ended:
            await process.close(eof_grace=0.0)
            raise RpcError(INTERNAL_ERROR, "the turn was cancelled")
        process.stdin.close()
        self._count += 1
        name = f"term_{self._count}"
        self._open[name] = _Terminal(process, order.limit)
        return {"terminalId": name}

    def output_size(self, params: Json) -> int:
        return self._find(params)[1].size

    async def output(self, params: Json) -> Json:
        return self._find(params)[1].output()

    async def wait_for_exit(self, params: Json) -> Json:
        return await self._find(params)[1].wait()

    async def kill(self, params: Json) -> Json:
        await self._find(params)[1].end()
        return {}

    async def release(self, params: Json) -> Json:
        name, terminal = self._find(params)
        del self._open[name]
        await terminal.end()
        return {}

    async def end_all(self) -> None:
        """Stop what runs; the output stays until it is released."""
        self._ended += 1
        await asyncio.gather(*(terminal.end() for terminal in self._open.values()))

    async def close(self) -> None:
        self._closed = True
        await self.end_all()
        self._open.clear()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop all of them for the time of the block; none is started meanwhile.

        For any thread but the event loop's, on which those that are being started have to get ready first.
        """
        with self._change:
            self._pauses += 1
        try:
            with self._change:
                self._change.wait_for(lambda: not self._spawning)
            with ExitStack() as stack:
                for terminal in list(self._open.values()):  # from a thread: the loop may remove some
                    if terminal.process.returncode is None:
                        stack.enter_context(terminal.process.pause())
                yield
        finally:
            with self._change:
                self._pauses -= 1
                over = [] if self._pauses else self._waiting
                self._waiting = self._waiting if self._pauses else []
            for loop, waiting in over:
                loop.call_soon_threadsafe(waiting.set)

    async def _wait_for_pauses(self) -> None:
        """Until there is none, and none can begin before what is started now can be stopped."""
        while True:  # the next pause may have begun when the end of one is heard of
            waiting = asyncio.Event()
            with self._change:
                if not self._pauses:
                    self._spawning += 1
                    return
                self._waiting.append((asyncio.get_running_loop(), waiting))
            await waiting.wait()

    def _find(self, params: Json) -> tuple[str, _Terminal]:
        name = params.get("terminalId")
        terminal = self._open.get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or terminal is None:
            raise RpcError(RESOURCE_NOT_FOUND, "no terminal of that name; it was released, or never made")
        return name, terminal


def _check_size(command: Any, arguments: Any, env: Any) -> None:
    """Refuse what is too much to be looked at word by word."""
    lists = [value for value in (arguments, env) if isinstance(value, list)]
    many = sum(len(value) for value in lists) > MAX_WORDS
    if many or any(is_larger(value, MAX_WORD_CHARS) for value in (command, *lists)):
        raise RpcError(
            INVALID_PARAMS,
            f"a command may have {MAX_WORDS:,} arguments and variables, and {MAX_WORD_CHARS:,} characters"
            " in them; write them into a file",
        )


def _read_variables(env: Any) -> list[str]:
    found: list[str] = []
    for item in env if isinstance(env, list) else []:
        name, value = (item.get("name"), item.get("value")) if isinstance(item, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(value, str) or "\0" in value:
            raise RpcError(INVALID_PARAMS, "env must be a list of {name, value}")
        if not VARIABLE.fullmatch(name):
            raise RpcError(INVALID_PARAMS, f"{name[:MAX_NAME_CHARS]} is not a valid name for a variable")
        found.append(f"{name}={value}")
    return found
