"""An editor that writes what it likes: to `clawdforge acp`, or to a server over a WebSocket."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Json = dict[str, Any]
WAIT = 60.0
LINE = 64 * 1024 * 1024


@dataclass
class RawEditor:
    """Writes what it likes. `heard` is every message of the agent, in order."""

    put: Callable[[bytes], Awaitable[None]]
    heard: list[Json] = field(default_factory=list)
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)
    _ids: int = 0

    async def listen(self, lines: AsyncIterable[str | bytes]) -> None:
        async for line in lines:
            message = json.loads(line)  # nothing but frames
            assert message["jsonrpc"] == "2.0"
            async with self._came:
                self.heard.append(message)
                self._came.notify_all()

    async def until(self, wanted: Callable[[Json], bool], count: int = 1) -> Json:
        """The message that is the `count`th of those that fit."""

        def found() -> list[Json]:
            return [message for message in self.heard if wanted(message)]

        async with asyncio.timeout(WAIT), self._came:
            await self._came.wait_for(lambda: len(found()) >= count)
        return found()[count - 1]

    async def write(self, data: bytes) -> None:
        await self.put(data)

    async def send(self, method: str, params: Json, number: Any = None) -> Any:
        """A request; its id."""
        self._ids += 1
        number = f"r{self._ids}" if number is None else number
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.write(json.dumps(message).encode() + b"\n")
        return number

    async def notify(self, method: str, params: Json) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    async def reply(self, number: Any, result: Json) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n")

    async def answer(self, number: Any) -> Json:
        """The whole answer to a request."""
        return await self.until(lambda m: m.get("id") == number and "method" not in m)

    async def call(self, method: str, params: Json) -> Json:
        """The result of a request that must succeed."""
        answer = await self.answer(await self.send(method, params))
        assert "error" not in answer, answer
        result: Json = answer["result"]
        return result

    async def refused(self, method: str, params: Json) -> tuple[int, str]:
        """Number and words of a refusal."""
        error = (await self.answer(await self.send(method, params)))["error"]
        return error["code"], error["message"]

    async def initialize(self) -> Json:
        return await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    async def new(self, cwd: Path) -> str:
        found = await self.call("session/new", {"cwd": str(cwd), "mcpServers": []})
        return str(found["sessionId"])

    async def prompt(self, session: str, text: str) -> Any:
        """Begin a prompt; the id of the request."""
        blocks = [{"type": "text", "text": text}]
        return await self.send("session/prompt", {"sessionId": session, "prompt": blocks})

    async def asked(self, count: int = 1) -> Json:
        return await self.until(lambda m: m.get("method") == "session/request_permission", count)

    def updates(self, word: str | None = None) -> list[Json]:
        found = [m["params"]["update"] for m in self.heard if m.get("method") == "session/update"]
        return [update for update in found if word in (None, update["sessionUpdate"])]

    def text(self, word: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.updates(word))


@contextlib.asynccontextmanager
async def editing(env: Mapping[str, str], cwd: Path, *flags: str) -> AsyncGenerator[RawEditor, None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clawdforge", "acp", *flags),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(env),
        cwd=cwd,
        limit=LINE,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def put(data: bytes) -> None:
        stdin.write(data)
        await stdin.drain()

    editor = RawEditor(put)
    listening = asyncio.create_task(editor.listen(stdout))
    try:
        yield editor
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await listening


def dial(url: str, token: str, **wishes: str) -> connect:
    """A WebSocket to the server, which is opened by `async with`."""
    query = urlencode(wishes)
    where = f"{url.replace('http', 'ws', 1)}/acp{'?' if query else ''}{query}"
    headers = {"Authorization": f"Bearer {token}"}
    return connect(where, additional_headers=headers, max_size=LINE, close_timeout=1)


@contextlib.asynccontextmanager
async def editing_afar(url: str, token: str, **wishes: str) -> AsyncGenerator[RawEditor, None]:
    """Over a WebSocket: each line that is written is a message."""
    async with dial(url, token, **wishes) as socket:
        editor = RawEditor(lambda data: socket.send(data.decode().removesuffix("\n")))
        listening = asyncio.create_task(editor.listen(_messages(socket)))
        try:
            yield editor
        finally:
            await socket.close()
            await listening


async def _messages(socket: ClientConnection) -> AsyncGenerator[str | bytes, None]:
    with contextlib.suppress(ConnectionClosed):
        async for message in socket:
            yield message
