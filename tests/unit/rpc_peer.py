"""A connection to a real process that does what a script says with each message, and who writes it down."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from clawdforge.core.pacing.pace import Pace
from clawdforge.drivers.acp.stdio import StdioPipe
from clawdforge.drivers.processes.pipes import Output
from clawdforge.jsonrpc.alike import Gatherer
from clawdforge.jsonrpc.rpc import METHOD_NOT_FOUND, Connection, RpcError
from clawdforge.wire.base import Json

PEER = """
import json, os, sys
out = sys.stdout
def send(**message):
    out.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    out.flush()
def update(n):
    send(method="session/update", params={"n": n})
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params")
    exec(open(sys.argv[1]).read())
"""


@dataclass
class Heard:
    """A handler that writes down what it is told."""

    told_messages: list[Json] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    on_message: Callable[[Json], Awaitable[None]] | None = None
    on_request: Callable[[str, Json], Awaitable[Json]] | None = None

    async def take_message(self, message: Json, size: int) -> None:
        if self.on_message is not None:
            await self.on_message(message)
        self.told_messages.append(message)
        self.sizes.append(size)

    async def answer_request(self, method: str, params: Json) -> Json:
        if self.on_request is None:
            raise RpcError(METHOD_NOT_FOUND, f"no {method}")
        return await self.on_request(method, params)

    async def report_lost_line(self, size: int) -> None:
        self.lost.append(size)

    def numbers(self) -> list[object]:
        return [message["params"]["n"] for message in self.told_messages]


async def until(condition: Callable[[], bool], within: float = 10.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 - the condition is another process's doing
            await asyncio.sleep(0.002)


def block_until(condition: Callable[[], bool], within: float = 10.0) -> None:
    """Without giving the loop a chance to do anything."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@asynccontextmanager
async def talk(
    body: str,
    heard: Heard,
    max_line_bytes: int = 1024 * 1024,
    pace: Pace | None = None,
    gatherer: Gatherer | None = None,
) -> AsyncIterator[tuple[Connection, asyncio.subprocess.Process]]:
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PEER, body, stdin=asyncio.subprocess.PIPE, stdout=writing
    )
    os.close(writing)
    assert process.stdin is not None
    pipe = os.fdopen(reading, "rb", buffering=0)
    output = Output(pipe, limit=262_144)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), pipe
    )
    own = (pace or Pace()).of("app")
    stdio = StdioPipe(output, process.stdin)
    connection = Connection(stdio, heard, own, max_line_bytes=max_line_bytes, gatherer=lambda: gatherer)
    try:
        yield connection, process
    finally:
        await connection.close()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        transport.close()
