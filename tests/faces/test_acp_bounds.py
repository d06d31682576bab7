"""What an editor's connection is held to, by the clock, by memory and by whose it is."""

import asyncio
import json
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.api.harness import AGENT, App, Server
from tests.faces.kit import WAIT, dial
from tests.faces.raw import CLOSE, PING, TEXT, connected, frame, opening

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
CONFIG = f"""
faces = ["acp"]
[agents.caller]
command = {json.dumps(AGENT)}
callback = true
"""
HEARTBEAT, HEADERS = 1.0, 2.0
SETTINGS = {
    "CLAWDFORGE_HEARTBEAT_SECS": str(HEARTBEAT),
    "CLAWDFORGE_HEADER_TIMEOUT_SECS": str(HEADERS),
    "CLAWDFORGE_MAX_BODY_BYTES": "4MiB",
    "CLAWDFORGE_MAX_BODIES_BYTES": "4MiB",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("bounds")
    (root / "config.toml").write_text(CONFIG)
    found = Server(root / "data", SETTINGS, "--config", str(root / "config.toml"))
    yield found
    found.stop()


@pytest.fixture
def mine(server: Server) -> App:
    return server.app()


async def test_who_does_not_introduce_itself_is_sent_away_and_who_did_stays(
    server: Server, mine: App
) -> None:
    async with asyncio.timeout(WAIT), dial(server.url, mine.token) as known:
        await known.send(json.dumps(INITIALIZE))
        await known.recv()
        clock = asyncio.get_running_loop().time
        began = clock()
        async with dial(server.url, mine.token) as unknown:  # which answers pings all the while
            with pytest.raises(ConnectionClosed) as ended:
                await unknown.recv()
        assert ended.value.rcvd is not None
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (1001, "nothing was heard of you")
        assert clock() - began >= 3 * HEADERS
        await known.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}))
        assert json.loads(await known.recv())["result"] == {"sessions": []}


async def test_who_is_silent_is_asked_and_then_taken_for_gone(server: Server, mine: App) -> None:
    async with connected(server) as line:
        await line.send(opening(server, mine.token))
        assert (await line.head())[0] == 101
        await line.send(frame(INITIALIZE))
        assert json.loads(await line.until(TEXT))["result"]["protocolVersion"] == 1
        began = asyncio.get_running_loop().time()
        await line.until(PING)
        code, reason = struct.unpack(">H", (said := await line.until(CLOSE))[:2])[0], said[2:]
        assert (code, reason) == (1001, b"nothing was heard of you")
        assert asyncio.get_running_loop().time() - began >= 3 * HEARTBEAT


async def test_where_there_is_no_memory_for_a_message_its_connection_ends(server: Server, mine: App) -> None:
    """No app has more than half of the memory for bodies; its other connections go on."""
    async with asyncio.timeout(WAIT), dial(server.url, mine.token) as other:
        await other.send(json.dumps(INITIALIZE))
        await other.recv()
        async with dial(server.url, mine.token) as full:
            with suppress(ConnectionClosed):  # before all of it was sent
                await full.send("x" * (3 << 20))
            with pytest.raises(ConnectionClosed) as ended:
                await full.recv()
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1013
        assert "try again" in ended.value.rcvd.reason
        await other.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}))
        assert json.loads(await other.recv())["result"] == {"sessions": []}


async def test_an_agents_own_token_opens_no_line(server: Server, mine: App) -> None:
    session = mine.session(agent="caller")
    mine.turn(session, "env CLAWDFORGE_TOKEN")
    token = mine.http.get(f"/sessions/{session}/messages").json()["messages"][-1]["content"]
    with pytest.raises(InvalidStatus) as refused:
        await dial(server.url, token)
    assert refused.value.response.status_code == 403
    assert server.client(token).get(f"/sessions/{session}").status_code == 200


def test_an_agent_with_an_apps_token_opens_no_line(server: Server, mine: App, tmp_path: Path) -> None:
    server.grant(mine, tmp_path)
    session = mine.session(cwd=str(tmp_path))
    host, _, port = server.url.partition("//")[2].partition(":")
    program = (
        f"import socket\nend = socket.create_connection(({host!r}, {port}))\n"
        f"end.sendall({opening(server, mine.token)!r})\nprint(end.recv(12).decode())\n"
    )
    (tmp_path / "call.py").write_text(program)
    mine.turn(session, f"terminal {sys.executable} {tmp_path / 'call.py'}")
    said = mine.http.get(f"/sessions/{session}/messages").json()["messages"][-1]["content"]
    assert "HTTP/1.1 403" in said, said
