"""An editor over a WebSocket: the same agent as on stdio, behind the door, the token and the app's share."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from acp import connect_to_agent, text_block
from acp.ws import create_websocket_stream
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.api.harness import ADMIN_TOKEN, App, Server, until
from tests.faces.kit import WAIT, dial, editing_afar
from tests.faces.test_acp import OfficialClient

pytestmark = pytest.mark.slow
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
OWN = {"own_folders": "true", "agent": "claude"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    env = {
        "CLAWDFORGE_FACES": "acp",
        "CLAWDFORGE_BODY_TIMEOUT_SECS": "1",
        "CLAWDFORGE_HEARTBEAT_SECS": "15",
        "CLAWDFORGE_SEND_TIMEOUT_SECS": "2",
        "CLAWDFORGE_MAX_BODY_BYTES": "4MiB",
    }
    found = Server(tmp_path_factory.mktemp("afar") / "data", env)
    yield found
    found.stop()


@pytest.fixture
def mine(server: Server) -> App:
    return server.app()


def used(app: App) -> Any:
    return app.http.get("/limits").json()


async def closed(socket: ClientConnection) -> tuple[int, str]:
    """Code and reason of the close that comes."""
    async with asyncio.timeout(WAIT):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as ended:
            return (ended.rcvd.code, ended.rcvd.reason) if ended.rcvd else (1006, "")


async def test_the_official_client_talks_loads_and_decides(server: Server, mine: App) -> None:
    client: Any = OfficialClient()
    where = f"{server.url.replace('http', 'ws')}/acp?own_folders=true&agent=claude&model=scripted-2"
    headers = {"Authorization": f"Bearer {mine.token}"}
    conn = connect_to_agent(client, await create_websocket_stream(where, headers=headers))
    assert (await conn.initialize(protocol_version=1)).protocol_version == 1
    session = (await conn.new_session(cwd="/on/another/machine")).session_id
    said = await conn.prompt(session_id=session, prompt=[text_block("echo hello\nask to go on")])
    assert said.stop_reason == "end_turn"
    assert client.text() == "hellopermission: allow_once"
    assert client.asked == ["to go on"]
    row = mine.http.get(f"/sessions/{session}").json()
    assert (row["model"], row["permission_mode"], row["agent"]) == ("scripted-2", "ask", "claude")
    await conn.close()
    again: Any = OfficialClient()
    conn = connect_to_agent(again, await create_websocket_stream(where, headers=headers))
    await conn.initialize(protocol_version=1)
    await conn.load_session(cwd="/on/another/machine", session_id=session)
    assert again.text() == "hellopermission: allow_once"
    assert again.text("user_message_chunk") == "echo hello\nask to go on"
    await conn.close()


async def test_nobody_gets_in_without_a_token_for_it(server: Server, mine: App) -> None:
    where = f"{server.url.replace('http', 'ws')}/acp"
    reads = server.app(mine.name, scopes=["read"]).token
    for headers, origin, status in (
        ({}, None, 401),
        ({"Authorization": "Bearer cf_wrong"}, None, 401),
        ({"Authorization": f"Bearer {reads}"}, None, 403),
        ({"Authorization": f"Bearer {ADMIN_TOKEN}"}, None, 403),
        ({"Authorization": f"Bearer {mine.token}"}, "https://elsewhere.example", 403),
        ({"Authorization": f"Bearer {mine.token}", "Host": "elsewhere.example"}, None, 421),
    ):
        with pytest.raises(InvalidStatus) as refused:
            await connect(where, additional_headers=headers, origin=origin)  # type: ignore[arg-type]
        assert refused.value.response.status_code == status, headers
    with pytest.raises(InvalidStatus) as refused:
        await dial(server.url, mine.token, folders="own")
    assert refused.value.response.status_code == 422
    plain = mine.http.get("/acp")
    assert (plain.status_code, "WebSocket" in plain.text) == (422, True)
    assert used(mine)["readers"] == 0


async def test_bad_messages_are_refused_in_words_and_the_connection_goes_on(
    server: Server, mine: App
) -> None:
    theirs, unknown = server.app().session(), "00000000-0000-4000-8000-000000000000"
    async with editing_afar(server.url, mine.token, **OWN) as editor:
        assert (await editor.refused("session/new", {"cwd": "/x"}))[0] == -32600
        await editor.initialize()
        await editor.write(b'{"jsonrpc": "2.0", "id": 1, "meth')
        assert (await editor.until(lambda m: "id" in m and m["id"] is None))["error"]["code"] == -32700
        await editor.write(b"[]")
        await editor.until(lambda m: "id" in m and m["id"] is None, count=2)
        await editor.reply(4711, {"outcome": {}})  # an answer to nothing
        spread = {"jsonrpc": "2.0", "id": "spread", "method": "session/list", "params": {}}
        await editor.write(json.dumps(spread, indent=1).encode())
        assert (await editor.answer("spread"))["result"] == {"sessions": []}
        for _ in range(2):
            await editor.send("session/list", {}, number=5)
        await editor.until(lambda m: m.get("id") == 5, count=2)
        for method in ("load", "resume", "fork", "close", "delete", "prompt", "set_mode"):
            params = {"cwd": "/x", "prompt": [{"type": "text", "text": "x"}], "modeId": "ask"}
            found = [
                await editor.refused(f"session/{method}", {**params, "sessionId": name})
                for name in (theirs, unknown)
            ]
            assert found[0] == found[1], method
            assert found[0][0] == -32002, method
        session = await editor.new(Path("/x"))
        running = await editor.prompt(session, "echo one\nsleep 30")
        await editor.until(lambda _: editor.text() == "one")
        assert (await editor.answer(await editor.prompt(session, "echo two")))["error"]["code"] == -32600
        await editor.notify("session/cancel", {"sessionId": session})
        assert (await editor.answer(running))["result"]["stopReason"] == "cancelled"
        await editor.notify("session/cancel", {"sessionId": session})  # after the end
        running = await editor.prompt(session, "echo on")
        assert (await editor.answer(running))["result"]["stopReason"] == "end_turn"


async def test_a_message_in_many_frames_is_one_and_others_than_text_are_ignored(
    server: Server, mine: App
) -> None:
    async with dial(server.url, mine.token) as socket:
        await socket.send(b"\x00\x01 no text")
        await socket.send([INITIALIZE[:9], "", *INITIALIZE[9:]])
        assert json.loads(await socket.recv())["result"]["protocolVersion"] == 1
        assert socket.response is not None
        assert socket.response.headers["Acp-Connection-Id"]


async def test_who_sends_too_much_or_too_slowly_is_sent_away(server: Server, mine: App) -> None:
    async with dial(server.url, mine.token) as socket:
        with contextlib.suppress(ConnectionClosed):  # before all of it was sent
            await socket.send("x" * (4 * 2**20 + 1))
        assert (await closed(socket))[0] == 1009
    async with dial(server.url, mine.token) as socket:
        socket.transport.write(b"\x81\xff\x00\x00")  # the head of a frame, and no more
        assert (await closed(socket))[0] == 1006
    async with dial(server.url, mine.token) as socket:
        await socket.send(INITIALIZE)
        await socket.recv()
        socket.transport.write(b"\x01\x80\x00\x00\x00\x00")  # a message that never ends
        assert (await closed(socket))[0] == 1006
    until(lambda: used(mine)["readers"] == 0, "its readers are gone")


async def test_who_hangs_up_before_it_is_answered_leaves_nothing_behind(server: Server, mine: App) -> None:
    host, _, port = server.url.partition("//")[2].partition(":")
    plain = f"Host: {host}:{port}\r\nAuthorization: Bearer {mine.token}\r\n"
    opening = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    for _ in range(20):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET /healthz HTTP/1.1\r\n{plain}\r\n".encode())
        await reader.readuntil(b"}")
        writer.write(f"GET /acp HTTP/1.1\r\n{plain}{opening}{key}".encode())
        writer.close()
        await writer.wait_closed()
    until(lambda: used(mine)["readers"] == 0, "its readers are gone", 20)


async def test_who_does_not_read_is_sent_away_and_its_turn_goes_on(server: Server, mine: App) -> None:
    async with dial(server.url, mine.token, **OWN) as socket:
        ask = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/x"}}
        for message in (INITIALIZE, json.dumps(ask)):
            await socket.send(message)
        await socket.recv()
        session = json.loads(await socket.recv())["result"]["sessionId"]
        socket.transport.pause_reading()
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "chunks 40 500000\necho end"}]}
        await socket.send(
            json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params})
        )
        turns = f"/sessions/{session}/turns"
        await asyncio.to_thread(until, lambda: mine.http.get(turns).json()["turns"], "the turn")
        await asyncio.to_thread(until, lambda: used(mine)["readers"] == 0, "it was sent away")
    await asyncio.to_thread(
        until, lambda: mine.http.get(f"/sessions/{session}").json()["activity"] == "idle", "the end"
    )
    assert [turn["outcome"] for turn in mine.http.get(turns).json()["turns"]] == ["completed"]


async def test_each_connection_is_one_of_its_apps_and_ends_with_its_token(server: Server) -> None:
    app = server.app()
    limits = {"app_name": app.name, "limits": {"max_readers": 2}}
    assert server.admin().post("/admin/apps", json=limits).status_code == 200
    async with dial(server.url, app.token) as socket, dial(server.url, app.token):
        assert used(app)["readers"] == 2
        with pytest.raises(InvalidStatus) as refused:
            await dial(server.url, app.token)
        assert refused.value.response.status_code == 429
        assert server.admin().delete(f"/admin/tokens/{app.token_id}").is_success
        assert (await closed(socket))[0] == 1008


async def test_a_face_that_is_not_named_is_not_there_and_a_stop_is_told(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", {"CLAWDFORGE_FACES": "acp"})
    try:
        app = server.app()
        async with dial(server.url, app.token) as socket:
            stopping = asyncio.create_task(asyncio.to_thread(server.stop))
            assert (await closed(socket))[0] == 1012
            assert await stopping == 0
        assert '"status": 101' in server.log_text
    finally:
        server.stop()
    other = Server(tmp_path / "other")
    try:
        assert httpx2.get(f"{other.url}/acp", verify=False).status_code == 404
    finally:
        other.stop()
