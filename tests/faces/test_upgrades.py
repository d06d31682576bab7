"""What comes right behind a request for an upgrade is heard, as frames or as HTTP, in whichever packet."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.api.harness import App, Server
from tests.faces.kit import WAIT
from tests.faces.raw import TEXT, connected, frame, opening

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("upgrades") / "data", {"CLAWDFORGE_FACES": "acp"})
    yield found
    found.stop()


@pytest.fixture
def mine(server: Server) -> App:
    return server.app()


async def test_what_comes_right_behind_the_request_is_heard(server: Server, mine: App) -> None:
    asked, more = opening(server, mine.token), {"jsonrpc": "2.0", "id": 1, "method": "session/list"}
    first, second = frame(INITIALIZE), frame({**more, "params": {}})
    for packets in (
        [asked + first + second],
        [asked + first[:5], first[5:] + second],
        [asked, first, second],
        [asked[:-2], asked[-2:] + first, second],
    ):
        async with connected(server) as line:
            await line.send(*packets)
            assert (await line.head())[0] == 101
            assert json.loads(await line.until(TEXT))["id"] == 0
            assert json.loads(await line.until(TEXT))["result"] == {"sessions": []}


async def test_behind_an_upgrade_that_is_not_made_comes_http(server: Server, mine: App) -> None:
    """A client may ask for HTTP/2, and send its next request before it knows the answer."""
    first = opening(server, mine.token, "/sessions").replace(b"websocket", b"h2c")
    plain = opening(server, mine.token, "/limits").replace(
        b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b""
    )
    for packets in ([first + plain], [first, plain], [first + plain[:30], plain[30:]]):
        async with connected(server) as line:
            await line.send(*packets)
            for word in (b'"sessions"', b'"readers"'):
                status, head = await line.head()
                size = int(head.lower().partition(b"content-length:")[2].split()[0])
                body = await asyncio.wait_for(line.reader.readexactly(size), WAIT)
                assert (status, word in body) == (200, True)
    async with connected(server) as line:
        await line.send(opening(server, "cf_wrong") + frame(INITIALIZE))
        assert (await line.head())[0] == 401
