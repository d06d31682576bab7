"""Hands the messages of an MCP client to the server, and its answers back. Nothing is kept here."""

from typing import Final

import orjson

from clawdforge.client._calls import Call
from clawdforge.client.errors import ForgeAPIError, ForgeError, NotFound
from clawdforge.faces.link import Link
from clawdforge.faces.pace import Alone
from clawdforge.jsonrpc.rpc import INTERNAL_ERROR, Connection, Pipe, RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.mcp_server import MAX_WAIT_SECS

PATH: Final = "/mcp"
ONCE: Final = frozenset({"start", "send"})
"""Tools that must not be called twice when nobody knows whether the first call arrived."""


class McpBridge:
    """One client, from its first message until it is gone. Whatever runs then goes on in the server."""

    def __init__(self, pipe: Pipe, link: Link) -> None:
        self._link = link
        self._connection = Connection(pipe, self, Alone(), answers_garbage=True)

    async def run(self) -> None:
        try:
            await self._connection.wait_closed()
        finally:
            await self._connection.close()

    async def take_message(self, message: Json, size: int) -> None:
        """Notifications change nothing here."""

    async def report_lost_line(self, size: int) -> None:
        """The connection answers for it."""

    async def answer_request(self, method: str, params: Json) -> Json:
        call: Call[Json] = Call(
            "POST",
            PATH,
            orjson.loads,
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            wait_secs=MAX_WAIT_SECS,
        )
        once = method == "tools/call" and params.get("name") in ONCE
        try:
            reply = await self._link.repeat(lambda forge: forge.transport.call(call), once=once)
        except NotFound:
            raise RpcError(
                INTERNAL_ERROR, "this server serves no MCP; start it with CLAWDFORGE_FACES=mcp"
            ) from None
        except ForgeError as error:
            said = error.message if isinstance(error, ForgeAPIError) else str(error)
            raise RpcError(INTERNAL_ERROR, said) from error
        if reply.get("error") is not None:
            raise RpcError.of(reply["error"])
        result: Json = reply.get("result") or {}
        return result
