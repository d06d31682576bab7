"""JSON-RPC over two pipes, from the agent's side: requests come in, updates and questions go out."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self

import orjson

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
UNKNOWN_SESSION: Final = -32002
LINE_BYTES: Final = 64 * 1024 * 1024

Json = dict[str, Any]
Handler = Callable[[str, Json], Awaitable[Json]]


class RpcError(Exception):
    """The error with which a request is answered."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """Each request runs as its own task; lines are written whole and in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._number = 0

    @classmethod
    async def open(cls, input_fd: int, output_fd: int) -> Self:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_BYTES)
        await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(input_fd, "rb", 0)
        )
        flow = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await loop.connect_write_pipe(lambda: flow, os.fdopen(output_fd, "wb", 0))
        return cls(reader, asyncio.StreamWriter(transport, flow, None, loop))

    async def serve(self, handler: Handler) -> None:
        """Handle messages until the end of input. A notification is handled before the next line is read."""
        while line := await self._reader.readline():
            try:
                message = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if not isinstance(message, dict):
                continue
            method, number = message.get("method"), message.get("id")
            if not isinstance(method, str):
                self._resolve(message)
            elif number is None:
                await handler(method, _params(message))
            else:
                task = asyncio.create_task(self._answer(handler, method, number, _params(message)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def notify(self, method: str, params: Json) -> None:
        await self._send({"method": method, "params": params})

    async def request(self, method: str, params: Json) -> Json:
        self._number += 1
        number, future = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._send({"id": number, "method": method, "params": params})
            answer: Json = await future
        finally:
            del self._waiting[number]
        if not isinstance(answer.get("result"), dict):
            raise RpcError(INTERNAL, f"{method} was refused: {answer.get('error')}")
        result: Json = answer["result"]
        return result

    async def _answer(self, handler: Handler, method: str, number: Any, params: Json) -> None:
        try:
            result = await handler(method, params)
        except RpcError as error:
            await self._send({"id": number, "error": {"code": error.code, "message": str(error)}})
        else:
            await self._send({"id": number, "result": result})

    def _resolve(self, message: Json) -> None:
        number = message.get("id")
        future = self._waiting.get(number) if isinstance(number, int) else None
        if future is not None and not future.done():
            future.set_result(message)

    async def _send(self, message: Json) -> None:
        self._writer.write(
            orjson.dumps({"jsonrpc": "2.0", **message}, default=str, option=orjson.OPT_NON_STR_KEYS)
        )
        self._writer.write(b"\n")
        await self._writer.drain()


def _params(message: Json) -> Json:
    params = message.get("params")
    return params if isinstance(params, dict) else {}
