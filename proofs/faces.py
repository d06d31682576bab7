"""The server is killed while every face answers: no turn is lost or run twice, and the text is the log's."""

import asyncio
import json
import random
from collections import Counter
from typing import Any, Final, Protocol

from proofs.kit.client import PATIENCE, PAUSE, Client
from proofs.kit.editors import Gone, Json, PipeEditor, Rpc, SocketEditor
from proofs.kit.history import check, fetch, heard
from proofs.kit.http import Cut, post_stream
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, zygote

SHORT, FULL = 2, 200
CHUNKS: Final = 250
"""Each after a pause of 10 ms: an answer is always cut off."""
MOST_LATER_SECS: Final = 0.3
"""So long after all have heard something the server is killed, at most."""


class Face(Protocol):
    """A client of one face with one session. `begun` is set when the first words of an answer are there."""

    name: str
    begun: asyncio.Event

    async def open(self) -> str:
        """Make its session; the id."""
        ...

    async def talk(self, prompt: str, key: str) -> str:
        """The text that its user has in the end, whatever happens to the server meanwhile."""
        ...

    async def close(self) -> None: ...


class Editor:
    """Over ACP. On pipes, the bridge finds the server again; over a WebSocket, the client loads again."""

    def __init__(self, name: str, server: Server, token: str, kind: type[PipeEditor | SocketEditor]) -> None:
        self.name = name
        self.begun = asyncio.Event()
        self._server = server
        self._token = token
        self._editor = kind(self._take)
        self._rpc: Rpc | None = None
        self._text = ""
        self._session = ""

    def _take(self, update: Json) -> None:
        if update["sessionUpdate"] == "user_message_chunk":
            self._text = ""
        elif update["sessionUpdate"] == "agent_message_chunk":
            self._text += update["content"]["text"]
            self.begun.set()

    async def open(self) -> str:
        self._rpc = await self._editor.open(self._server, self._token)
        made = await self._rpc.ask("session/new", {"cwd": "/", "mcpServers": []})
        self._session = made["result"]["sessionId"]
        return self._session

    async def talk(self, prompt: str, key: str) -> str:  # noqa: ARG002 - the bridge makes its own
        assert self._rpc is not None
        self._text = ""
        blocks = [{"type": "text", "text": prompt}]
        try:
            await self._rpc.ask("session/prompt", {"sessionId": self._session, "prompt": blocks})
        except Gone:
            await self._load()
        return self._text

    async def _load(self) -> None:
        while True:
            self._rpc = await self._editor.open(self._server, self._token)
            try:
                loaded = await self._rpc.ask("session/load", {"sessionId": self._session, "cwd": "/"})
            except Gone:
                continue
            assert "result" in loaded, loaded
            return

    async def close(self) -> None:
        await self._editor.close()


class Streamed:
    """Over a stream that answers a POST, which is sent again until its end is there."""

    def __init__(self, name: str, client: Client, path: str) -> None:
        self.name = name
        self.begun = asyncio.Event()
        self._client = client
        self._path = path
        self._session = ""

    async def open(self) -> str:
        self._session = await self._client.session(retention="keep")
        return self._session

    async def talk(self, prompt: str, key: str) -> str:
        text, last, why = "", "", ""
        path = self._path.format(session=self._session)
        body, headers = self._ask(prompt, key)
        end = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < end:
            resumes = bool(last)
            before, text = text, text if resumes else ""
            more = {"Last-Event-ID": last} if resumes else {}
            try:
                async for name, data in post_stream(
                    self._client.port, path, self._client.token, body, {**headers, **more}
                ):
                    last = name or last
                    if data == "[DONE]":
                        return text
                    found = json.loads(data)
                    text += self._words(found)
                    if text:
                        self.begun.set()
                    if self._is_end(found):
                        return text
            except Cut as cut:
                why = str(cut)
                if not text.startswith(before[: len(text)]):
                    return f"first {before!r}, then {text!r}"
                text = max(before, text, key=len)
            await asyncio.sleep(PAUSE)
        raise Stuck(f"{self.name} got no end: {why}")

    async def close(self) -> None:
        """Each request has its own connection."""

    def _ask(self, prompt: str, key: str) -> tuple[Json, dict[str, str]]:
        named = {"X-Clawdforge-Session": self._session, "Idempotency-Key": key}
        message = {"id": key, "role": "user", "content": prompt}
        if self.name == "ag-ui":
            return {"threadId": "t", "runId": key, "messages": [message]}, {}
        if self.name == "vercel":
            parts = [{"type": "text", "text": prompt}]
            return {"id": "c", "messages": [{"id": key, "role": "user", "parts": parts}]}, {}
        if self.name == "responses":
            return {"model": "scripted", "input": prompt, "stream": True}, named
        del message["id"]
        return {"model": "scripted", "messages": [message], "stream": True}, named

    def _words(self, found: Json) -> str:
        kind = found.get("type")
        if kind in ("TEXT_MESSAGE_CONTENT", "text-delta", "response.output_text.delta"):
            return str(found["delta"])
        choices = found.get("choices") or [{}]
        return str(choices[0].get("delta", {}).get("content") or "")

    def _is_end(self, found: Json) -> bool:
        ends = ("RUN_FINISHED", "RUN_ERROR", "response.completed", "response.failed", "response.incomplete")
        return found.get("type") in (*ends, "error") or "error" in found


class Tools:
    """Over MCP: `send`, and `wait` from the last cursor on until the turn has ended."""

    name = "mcp"

    def __init__(self, client: Client) -> None:
        self.begun = asyncio.Event()
        self._client = client
        self._session = ""

    async def open(self) -> str:
        self._session = await self._client.session(retention="keep")
        return self._session

    async def talk(self, prompt: str, key: str) -> str:  # noqa: ARG002 - nobody kills before it is answered
        text = ""
        found = await self._call("send", {"session_id": self._session, "prompt": prompt})
        while found.get("state") != "ended":
            asked = {"session_id": self._session, "turn": found["turn"], "after": found["cursor"]}
            found = await self._call("wait", {**asked, "seconds": 0.05 if text else 0.3})
            text += found["text"]
            if text:
                self.begun.set()
        return text

    async def close(self) -> None:
        """Each request has its own connection."""

    async def _call(self, tool: str, arguments: Json) -> Any:
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        answer = await self._client.repeat(
            "POST", "/mcp", {**ask, "params": {"name": tool, "arguments": arguments}}
        )
        assert not answer["result"].get("isError"), answer
        return answer["result"]["structuredContent"]


def prove(run: Run) -> None:
    env = {"CLAWDFORGE_FACES": "acp,openai,mcp,agui,vercel"}
    with zygote(run.source) as made, Server(run.folder, made, source=run.source, env=env) as server:
        server.start()
        asyncio.run(_play(run, server))


async def _play(run: Run, server: Server) -> None:
    token = server.token()
    client = Client(server.port, token)
    faces: list[Face] = [
        Editor("acp", server, token, PipeEditor),
        Editor("acp over websocket", server, token, SocketEditor),
        Streamed("chat", client, "/v1/chat/completions"),
        Streamed("responses", client, "/v1/responses"),
        Tools(client),
        Streamed("ag-ui", client, "/sessions/{session}/ag-ui"),
        Streamed("vercel", client, "/sessions/{session}/ui"),
    ]
    cut_off = Counter[str]()
    try:
        sessions = {face.name: await face.open() for face in faces}
        for number in range(run.size):
            await _kill_once(run, server, client, faces, sessions, number)
            run.progress(f"{number + 1} of {run.size} kills")
        for face in faces:
            cut_off[face.name] = await _check(run, server, client, face, sessions[face.name])
    finally:
        for face in faces:
            await face.close()
    run.figure(kills=run.size, faces=len(faces), turns=run.size * len(faces))
    run.figure(turns_cut_off=", ".join(f"{name} {count}" for name, count in cut_off.items()))


async def _kill_once(
    run: Run, server: Server, client: Client, faces: list[Face], sessions: dict[str, str], number: int
) -> None:
    for face in faces:
        face.begun.clear()
    prompts = [f"chunks {CHUNKS} 12 10\necho {face.name} {number}" for face in faces]
    keys = [f"key-{face.name.replace(' ', '-')}-{number}" for face in faces]
    talks = [
        asyncio.create_task(face.talk(prompt, key), name=face.name)
        for face, prompt, key in zip(faces, prompts, keys, strict=True)
    ]
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(face.begun.wait() for face in faces))
    await asyncio.sleep(random.Random(f"{run.seed} {number}").uniform(0, MOST_LATER_SECS))
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    for face, prompt, told in zip(faces, prompts, await asyncio.gather(*talks), strict=True):
        session = sessions[face.name]
        turns = [turn for turn in await client.wait_ended(session) if turn["prompt"] == prompt]
        if not run.check(len(turns) == 1, f"{face.name}: {len(turns)} turns for one prompt"):
            continue
        events = await client.pages(f"/sessions/{session}/events", "events")
        said = "".join(
            event["content"]
            for event in events
            if event["turn"] == turns[0]["turn_index"] and event["type"] == "text"
        )
        run.check(told == said, f"{face.name}: its user has {told[-80:]!r}, the log {said[-80:]!r}")


async def _check(run: Run, server: Server, client: Client, face: Face, session: str) -> int:
    """How many turns were cut off, once everything else about them is right."""
    history = await fetch(client, session)
    history.heard = heard(server.witness)
    for fault in check(history):
        run.violate(f"{face.name}: {fault}")
    return sum(turn["outcome"] == "interrupted" for turn in history.turns)
