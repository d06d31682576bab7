"""Clients of faces that speak ACP: a process with pipes, and a WebSocket that is opened again."""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from proofs.kit.client import PATIENCE, PAUSE
from proofs.kit.http import LIMIT
from proofs.kit.server import Server

Json = dict[str, Any]


class Gone(Exception):
    """The connection ended before an answer came."""


class Rpc:
    """Requests of an editor, and what the agent shows meanwhile."""

    def __init__(self, put: Callable[[str], Awaitable[None]], on_update: Callable[[Json], None]) -> None:
        self._put = put
        self._on_update = on_update
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Json]] = {}

    async def listen(self, lines: AsyncIterable[str | bytes]) -> None:
        try:
            async for line in lines:
                message = json.loads(line)
                if message.get("method") == "session/update":
                    self._on_update(message["params"]["update"])
                elif message.get("id") in self._waiting:
                    self._waiting.pop(message["id"]).set_result(message)
        except ConnectionClosed:
            pass
        finally:
            for future in self._waiting.values():
                future.set_exception(Gone())
            self._waiting.clear()

    async def ask(self, method: str, params: Json) -> Json:
        """The whole answer, also when it is a refusal."""
        number = next(self._ids)
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._put(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        except ConnectionClosed:
            raise Gone from None
        async with asyncio.timeout(PATIENCE):
            return await answer

    async def initialize(self) -> None:
        await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})


class PipeEditor:
    """`clawdforge acp`, which lives through the deaths of the server."""

    def __init__(self, on_update: Callable[[Json], None]) -> None:
        self._on_update = on_update
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def open(self, server: Server, token: str) -> Rpc:
        where = f"http://127.0.0.1:{server.port}"
        words = ("acp", "--server", where, "--own-folders", "--agent", "scripted")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "clawdforge", *words),
            env={**server.env, "CLAWDFORGE_TOKEN": token},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LIMIT,
        )
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        async def put(line: str) -> None:
            stdin.write(line.encode() + b"\n")
            await stdin.drain()

        rpc = Rpc(put, self._on_update)
        self._process = process
        self._listening = asyncio.create_task(rpc.listen(stdout))
        await rpc.initialize()
        return rpc

    async def close(self) -> None:
        if self._process is not None and self._listening is not None:
            self._process.kill()
            await self._process.wait()
            await self._listening


class SocketEditor:
    """A WebSocket, and another one when that is gone."""

    def __init__(self, on_update: Callable[[Json], None]) -> None:
        self._on_update = on_update
        self._socket: ClientConnection | None = None
        self._listening: asyncio.Task[None] | None = None

    async def open(self, server: Server, token: str) -> Rpc:
        await self.close()
        where = f"ws://127.0.0.1:{server.port}/acp?own_folders=true&agent=scripted"
        headers = {"Authorization": f"Bearer {token}"}
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(OSError, InvalidHandshake, Gone, TimeoutError):
                    self._socket = socket = await connect(where, additional_headers=headers, max_size=LIMIT)
                    rpc = Rpc(socket.send, self._on_update)
                    self._listening = asyncio.create_task(rpc.listen(socket))
                    await rpc.initialize()
                    return rpc
                await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._listening is not None:
            await self._listening
