"""`clawdforge acp` as an editor starts it: a process, lines to it and from it, and nothing else on stdout."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
WAIT = 60.0
LINE = 64 * 1024 * 1024


@dataclass
class RawEditor:
    """Writes what it likes. `heard` is every message of the agent, in order."""

    process: asyncio.subprocess.Process
    heard: list[Json] = field(default_factory=list)
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)
    _ids: int = 0

    async def listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            message = json.loads(line)  # stdout carries frames only
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
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

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
    editor = RawEditor(process)
    listening = asyncio.create_task(editor.listen())
    try:
        yield editor
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await listening
