"""The server as an MCP server, led by the official client: over HTTP in both generations, and over stdio."""

import json
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.api.harness import AGENT, App, Server
from tests.cli.kit import environment

CONFIG = f"""
faces = ["mcp"]
[agents.caller]
command = {json.dumps(AGENT)}
callback = true
"""
TOOLS = {"start", "send", "wait", "read", "list", "search", "cancel"}


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("mcp")
    (root / "config.toml").write_text(CONFIG)
    found = Server(root / "data", {}, "--config", str(root / "config.toml"))
    yield found
    found.stop()


@pytest.fixture
def mine(face: Server) -> Iterator[App]:
    with face.closing_clients():
        yield face.app()


@asynccontextmanager
async def over_http(server: Server, token: str, mode: Any = "auto") -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=90, verify=False) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def call(client: Client, name: str, /, **arguments: Any) -> Any:
    found = await client.call_tool(name, arguments)
    assert not found.is_error, found
    assert json.loads(found.content[0].text) == found.structured_content  # type: ignore[union-attr]
    return found.structured_content


async def refused(client: Client, name: str, /, **arguments: Any) -> str:
    found = await client.call_tool(name, arguments)
    assert found.is_error, found
    return str(json.loads(found.content[0].text)["code"])  # type: ignore[union-attr]


async def hear(client: Client, begun: Any, seconds: float = 30) -> Any:
    """The whole answer, however many calls it takes; and the last of what they returned."""
    text, cursor = "", begun["cursor"]
    for _ in range(200):
        part = await call(
            client, "wait", session_id=begun["session_id"], turn=begun["turn"], after=cursor, seconds=seconds
        )
        text, cursor = text + part["text"], part["cursor"]
        if part["state"] in ("ended", "waiting"):
            return text, part
    raise AssertionError("it does not end")


async def lead(client: Client) -> None:
    """A whole conversation, tool by tool."""
    assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
    begun = await call(client, "start", prompt="chunks 30 2500 2", agent="claude", title="led")
    text, last = await hear(client, begun)  # longer than one call returns
    assert (len(text), text[:2], text[29 * 2500 :][:3]) == (30 * 2500, "1.", "30.")
    assert (last["outcome"], last["stop_reason"]) == ("completed", "end_turn")
    more = await call(client, "send", session_id=begun["session_id"], prompt="echo tamarind")
    assert (await hear(client, more))[0] == "tamarind"
    again = await call(client, "wait", session_id=begun["session_id"])
    assert (again["text"], again["state"]) == ("tamarind", "ended")
    page = await call(client, "read", session_id=begun["session_id"], after=2)
    assert [(m["role"], m["content"]) for m in page["messages"]] == [
        ("user", "echo tamarind"),
        ("assistant", "tamarind"),
    ]
    listed = await call(client, "list", limit=1)
    assert listed["sessions"][0]["session_id"] == begun["session_id"]
    assert (await call(client, "search", q="tamarind"))["hits"][0]["session_id"] == begun["session_id"]
    huge = await call(client, "send", session_id=begun["session_id"], prompt="bytes 200000")
    part = await call(client, "wait", session_id=begun["session_id"], after=huge["cursor"])
    assert (len(part["text"]), part["is_cut"]) == (64 * 1024, True)
    assert (await hear(client, huge))[1]["state"] == "ended"
    long = await call(client, "send", session_id=begun["session_id"], prompt="echo a\nsleep 60")
    part = await call(client, "wait", session_id=begun["session_id"], after=long["cursor"], seconds=0.2)
    assert part["state"] == "running"
    assert (await call(client, "cancel", session_id=begun["session_id"]))["cancelled"] == 1
    assert (await hear(client, long))[1]["outcome"] == "cancelled"


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_a_session_is_led_over_http(face: Server, mine: App, mode: str) -> None:
    async with over_http(face, mine.token, mode) as client:
        await lead(client)


async def test_a_session_is_led_over_stdio(face: Server, tmp_path: Path) -> None:
    env = environment(face.data_dir, tmp_path)
    command = StdioServerParameters(command=sys.executable, args=["-m", "clawdforge", "mcp"], env=env)
    async with Client(command, mode="legacy") as client:
        await lead(client)


async def test_a_server_that_does_not_serve_it_says_so(server: Server, tmp_path: Path) -> None:
    env = environment(server.data_dir, tmp_path)
    command = StdioServerParameters(command=sys.executable, args=["-m", "clawdforge", "mcp"], env=env)
    said = pytest.RaisesExc(MCPError, match="CLAWDFORGE_FACES=mcp")
    with pytest.RaisesGroup(said, flatten_subgroups=True):
        async with Client(command, mode="legacy"):
            pass


async def test_what_a_session_asks_for_is_for_somebody_else_to_decide(face: Server, mine: App) -> None:
    async with over_http(face, mine.token) as client:
        begun = await call(client, "start", prompt="ask write a file", agent="claude")
        _, last = await hear(client, begun)
        assert last["state"] == "waiting"
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("decide", {})
        path = f"/sessions/{begun['session_id']}/permissions/{last['permissions'][0]['permission_id']}"
        assert mine.http.post(path, json={"decision": "reject"}).status_code == 200
        _, last = await hear(client, {**begun, "cursor": last["cursor"]})
        assert last["outcome"] == "completed"


async def test_another_apps_session_is_an_unknown_one_to_every_tool(face: Server, mine: App) -> None:
    theirs = face.app()
    session_id = theirs.session()
    async with over_http(face, mine.token) as client:
        for name, more in (
            ("send", {"prompt": "x"}),
            ("wait", {}),
            ("read", {}),
            ("cancel", {}),
        ):
            foreign = await client.call_tool(name, {"session_id": session_id, **more})
            unknown = await client.call_tool(name, {"session_id": "nobody", **more})
            assert foreign.is_error
            assert foreign.content == unknown.content, name
        assert await refused(client, "read", session_id="nobody", surprise=1) == "invalid_request"
        assert await refused(client, "wait", session_id=mine.session()) == "turn_not_found"
        assert await refused(client, "wait", session_id="x", seconds=61) == "invalid_request"


async def test_a_token_has_the_tools_that_it_is_good_for(face: Server) -> None:
    reader = face.app(scopes=["read"])
    async with over_http(face, reader.token) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"wait", "read", "list", "search"}


async def test_agents_lead_sub_sessions_only_so_deep(face: Server, mine: App) -> None:
    """With its own token an agent has its session and those below; three below each other are the most."""
    session_id = mine.session(agent="caller")
    for depth in range(4):
        mine.turn(session_id, "env CLAWDFORGE_TOKEN")
        messages = mine.http.get(f"/sessions/{session_id}/messages").json()["messages"]
        token = messages[-1]["content"]
        async with over_http(face, token) as client:
            assert await refused(client, "send", session_id=session_id, prompt="x") == "forbidden"
            assert await refused(client, "search", q="x") == "forbidden"
            if depth == 3:
                assert await refused(client, "start", prompt="echo deep") in (
                    "invalid_request",
                    "limit_exceeded",
                )
                return
            begun = await call(client, "start", prompt="echo deeper")
            if depth == 0:
                others = mine.session(parent_session_id=session_id, title="made by somebody else")
                assert await refused(client, "read", session_id=others) == "session_not_found"
            assert (await hear(client, begun))[0] == "deeper"
            listed = await call(client, "list")
            assert [one["session_id"] for one in listed["sessions"]] == [begun["session_id"]]
        session_id = begun["session_id"]


def test_an_agent_with_an_apps_token_begins_nothing(face: Server, mine: App, tmp_path: Path) -> None:
    """It could begin sessions whose agents begin sessions, without an end."""
    face.grant(mine, tmp_path)
    session_id = mine.session(cwd=str(tmp_path))
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    params = {"name": "start", "arguments": {"prompt": "echo x"}}
    program = (
        "import json,urllib.request as u;"
        f"r=u.Request({f'{face.url}/mcp'!r},json.dumps({ {**asked, 'params': params}!r}).encode(),"
        f"{ {'Authorization': f'Bearer {mine.token}', 'Content-Type': 'application/json'}!r});"
        "print(u.urlopen(r).read().decode())"
    )
    (tmp_path / "call.py").write_text(program)
    mine.turn(session_id, f"terminal {sys.executable} {tmp_path / 'call.py'}")
    said = mine.http.get(f"/sessions/{session_id}/messages").json()["messages"][-1]["content"]
    assert "forbidden" in said, said
    assert mine.http.get("/sessions").json()["count"] == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nothing"}}, -32602),
        (
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "ping",
                "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}},
            },
            -32022,
        ),
    ],
)
def test_what_is_no_request_is_told_so(mine: App, body: Any, code: int) -> None:
    assert mine.http.post("/mcp", json=body).json()["error"]["code"] == code


def test_a_session_whose_first_prompt_is_refused_is_gone_again(face: Server, mine: App) -> None:
    limits = {"app_name": mine.name, "limits": {"max_turns_in_flight": 0}}
    assert face.admin().post("/admin/apps", json=limits).status_code == 200
    ask = {"name": "start", "arguments": {"prompt": "echo hi", "agent": "claude"}}
    reply = mine.http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ask})
    assert reply.json()["result"]["isError"]
    assert mine.http.get("/sessions?include_closed=true").json()["sessions"] == []


def test_notifications_are_taken_and_streams_are_not_offered(mine: App) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert mine.http.post("/mcp", json=note).status_code == 202
    assert mine.http.get("/mcp").status_code == 405
    assert mine.http.post("/mcp", json=[note]).status_code == 422
