"""What each face adds to a turn: every face and the forge route in turn, in one run, over the same server.

    .venv/bin/python -m bench.faces [--turns 60] [--messages 10000]

A turn is timed from the prompt to the end of its answer. Between two there is a pause, so that none waits for
the copy of a home. Beside the time stands what the server's processor had to do, and that of the bridge for
ACP on pipes, which is a process of its own. At the end, how long a load of a long history takes over ACP.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
from websockets.asyncio.client import connect

from bench.kit import cpu_secs, server
from clawdforge.wire.local import TOKEN_FILE

PAUSE = 0.1
WARM = 5
LOADS = 3
LINE = 1 << 26
PROMPT = "echo hello"
Json = dict[str, Any]
Turn = Callable[[], Awaitable[None]]


class Editor:
    """Over ACP, whichever way lines go and come."""

    def __init__(
        self, put: Callable[[str], Awaitable[None]], take: Callable[[], Awaitable[str | bytes]]
    ) -> None:
        self._put = put
        self._take = take
        self._number = 0
        self.updates = 0

    async def call(self, method: str, params: Json) -> Json:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self._put(json.dumps(message))
        while True:
            heard = json.loads(await self._take())
            self.updates += heard.get("method") == "session/update"
            if heard.get("id") == self._number:
                return dict(heard["result"])

    async def open(self) -> Turn:
        await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        session = (await self.call("session/new", {"cwd": "/", "mcpServers": []}))["sessionId"]
        blocks = [{"type": "text", "text": PROMPT}]

        async def turn() -> None:
            await self.call("session/prompt", {"sessionId": session, "prompt": blocks})

        return turn


async def on_pipes(ends: AsyncExitStack, url: str, token: str, data: Path) -> tuple[Editor, int]:
    words = ("acp", "--server", url, "--own-folders", "--agent", "scripted")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clawdforge", *words),
        env={"CLAWDFORGE_TOKEN": token, "CLAWDFORGE_DATA_DIR": str(data), "PATH": "/usr/bin:/bin"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE,
    )
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def put(line: str) -> None:
        stdin.write(line.encode() + b"\n")
        await stdin.drain()

    ends.push_async_callback(process.wait)
    ends.callback(process.kill)
    return Editor(put, stdout.readline), process.pid


async def over_websocket(ends: AsyncExitStack, url: str, token: str) -> Editor:
    where = f"{url.replace('http', 'ws', 1)}/acp?own_folders=true&agent=scripted"
    headers = {"Authorization": f"Bearer {token}"}
    socket = await ends.enter_async_context(connect(where, additional_headers=headers, max_size=LINE))
    return Editor(socket.send, socket.recv)


async def posted(http: httpx2.AsyncClient, path: str, body: Callable[[str, int], Json]) -> Turn:
    """A stream that answers a POST, read to its end."""
    made = await http.post("/sessions", json={"agent": "scripted"})
    session = str(made.json()["session_id"])
    count = 0

    async def turn() -> None:
        nonlocal count
        count += 1
        headers = {"Accept": "text/event-stream", "X-Clawdforge-Session": session}
        where = path.format(session=session)
        async with http.stream("POST", where, json=body(session, count), headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            async for _ in answer.aiter_raw():
                pass

    return turn


async def led(http: httpx2.AsyncClient) -> Turn:
    """Over MCP: `send`, then one `wait`."""
    made = await http.post("/sessions", json={"agent": "scripted"})
    session = made.json()["session_id"]

    async def call(tool: str, **arguments: Any) -> Json:
        params = {"name": tool, "arguments": {"session_id": session, **arguments}}
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return dict((await http.post("/mcp", json=ask)).json()["result"]["structuredContent"])

    async def turn() -> None:
        sent = await call("send", prompt=PROMPT)
        heard = await call("wait", turn=sent["turn"], after=sent["cursor"])
        assert heard["state"] == "ended", heard

    return turn


def _chat(_session: str, _count: int) -> Json:
    return {"model": "scripted", "messages": [{"role": "user", "content": PROMPT}], "stream": True}


def _run(_session: str, count: int) -> Json:
    message = {"id": "m", "role": "user", "content": PROMPT}
    return {"threadId": "t", "runId": f"run-{count}", "messages": [message]}


def _message(_session: str, count: int) -> Json:
    parts = [{"type": "text", "text": PROMPT}]
    return {"id": "c", "messages": [{"id": f"m{count}", "role": "user", "parts": parts}]}


async def measure(url: str, token: str, data: Path, pid: int, turns: int, messages: int) -> None:
    async with AsyncExitStack() as ends:
        headers = {"Authorization": f"Bearer {token}"}
        http = await ends.enter_async_context(
            httpx2.AsyncClient(base_url=url, headers=headers, timeout=60, verify=False)
        )
        pipes, bridge = await on_pipes(ends, url, token, data)
        socket = await over_websocket(ends, url, token)
        faces: dict[str, Turn] = {
            "forge, POST …/turn as a stream": await posted(
                http, "/sessions/{session}/turn", lambda _session, _count: {"prompt": PROMPT}
            ),
            "ACP on pipes": await pipes.open(),
            "ACP over a WebSocket": await socket.open(),
            "OpenAI, chat": await posted(http, "/v1/chat/completions", _chat),
            "OpenAI, responses": await posted(
                http,
                "/v1/responses",
                lambda session, _: {
                    "model": "scripted",
                    "input": PROMPT,
                    "stream": True,
                    "conversation": session,
                },
            ),
            "MCP, send and wait": await led(http),
            "AG-UI": await posted(http, "/sessions/{session}/ag-ui", _run),
            "Vercel": await posted(http, "/sessions/{session}/ui", _message),
        }
        times: dict[str, list[float]] = {name: [] for name in faces}
        work: dict[str, float] = dict.fromkeys(faces, 0.0)
        for number in range(WARM + turns):
            for name, turn in faces.items():
                before, began = cpu_secs(pid) + cpu_secs(bridge), time.perf_counter()
                await turn()
                took = time.perf_counter() - began
                if number >= WARM:
                    times[name].append(took)
                    work[name] += cpu_secs(pid) + cpu_secs(bridge) - before
                await asyncio.sleep(PAUSE)
        report(times, work, turns)
        await load(http, {"pipes": pipes, "a WebSocket": socket}, messages, (pid, bridge))


def report(times: dict[str, list[float]], work: dict[str, float], turns: int) -> None:
    first, *_ = times
    base, base_work = statistics.median(times[first]), work[first] / turns
    for name, found in times.items():
        p50, cpu = statistics.median(found), work[name] / turns
        print(f"{name:34} {p50 * 1e3:7.2f} ms p50  {cpu * 1e3:6.2f} ms of CPU", end="")
        print(
            ""
            if name == first
            else f"   adds {(p50 - base) * 1e3:+6.2f} ms, {(cpu - base_work) * 1e3:+6.2f} of CPU"
        )


async def load(
    http: httpx2.AsyncClient, editors: dict[str, Editor], messages: int, pids: tuple[int, int]
) -> None:
    """A long history, imported, and replayed to an editor."""
    said = [{"role": ("user", "assistant")[at % 2], "content": f"message {at}"} for at in range(messages)]
    reply = await http.post(
        "/sessions/import", json={"format": "messages", "agent": "scripted", "messages": said}
    )
    assert reply.status_code == 200, reply.text
    session = reply.json()["session_id"]
    for name, editor in editors.items():
        times, before = [], sum(map(cpu_secs, pids))
        for _ in range(LOADS):
            editor.updates = 0
            began = time.perf_counter()
            await editor.call("session/load", {"sessionId": session, "cwd": "/", "mcpServers": []})
            times.append(time.perf_counter() - began)
            assert editor.updates == messages, editor.updates
        print(
            f"{f'a load of {messages:,} messages over {name}':46} {statistics.median(times):6.2f} s", end=""
        )
        print(f"   {(sum(map(cpu_secs, pids)) - before) / LOADS:.2f} s of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--messages", type=int, default=10_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        data = Path(folder) / "data"
        faces = "acp,openai,mcp,agui,vercel"
        with server(data, CLAWDFORGE_FACES=faces, CLAWDFORGE_LOG_LEVEL="warning") as (http, pid):
            token = (data / TOKEN_FILE).read_text().strip()
            asyncio.run(measure(str(http.base_url), token, data, pid, args.turns, args.messages))


if __name__ == "__main__":
    main()
