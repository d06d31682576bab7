"""The route of the MCP server: one message in, one answer out, and nothing kept in between."""

import asyncio
from functools import partial
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.connections.connection import is_from_agent
from clawdforge.http.connections.waiting import unless_disconnected
from clawdforge.http.dialects.mcp import protocol
from clawdforge.http.dialects.mcp.protocol import RpcFailure
from clawdforge.http.dialects.mcp.tools import DECIDE, TOOLS, Desk, Tool
from clawdforge.http.errors import json_response
from clawdforge.http.routers import Router
from clawdforge.http.routing import AppRoute, Caller, Core, has_own_limit
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.base import Json
from clawdforge.wire.errors import ForgeAPIError, InternalError, RequestTimedOut
from clawdforge.wire.mcp_server import RpcMessage, RpcReply

TAKEN: Final = 202


class McpRoute(AppRoute):
    """A route whose callers speak JSON-RPC."""

    dialect = "mcp"
    refuses_unknown = False


def routers() -> list[Router]:
    router = Router(McpRoute, tags=["mcp"])
    router.post("/mcp", response_model=RpcReply)(answer)
    return [router]


@has_own_limit
async def answer(request: Request, core: Core, caller: Caller, body: RpcMessage) -> Response:
    """One message of the Model Context Protocol (streamable HTTP); sessions are its tools."""
    if body.id is None:
        return Response(status_code=TAKEN)  # a notification, or an answer: nothing was asked
    number = body.id
    try:
        method, params = _read(body)
        desk = Desk(core, caller, partial(is_from_agent, request))
        result = await _answer(request, desk, method, params)
    except RpcFailure as failure:
        return json_response({"jsonrpc": "2.0", "id": number, "error": failure.error})
    if result is None:
        return Response()  # nobody is there to read it
    return json_response({"jsonrpc": "2.0", "id": number, "result": result})


def _read(body: RpcMessage) -> tuple[str, Json]:
    if body.jsonrpc != "2.0" or body.method is None:
        raise RpcFailure(protocol.INVALID_REQUEST, "send one request of JSON-RPC 2.0")
    if body.params is not None and not isinstance(body.params, dict):
        raise RpcFailure(protocol.INVALID_PARAMS, "params must be an object")
    return body.method, body.params or {}


async def _answer(request: Request, desk: Desk, method: str, params: Json) -> Json | None:
    settings: HttpSettings = request.app.state.settings
    if method == "initialize":
        return protocol.initialize(params, settings.version)
    is_modern = protocol.find_version(params) is not None
    if method == "ping":
        return {}
    if method == "server/discover":
        return protocol.discover(settings.version)
    tools = _find_tools(desk, settings)
    if method == "tools/list":
        return protocol.list_tools([tool.describe() for tool in tools.values()], modern=is_modern)
    if method == "tools/call":
        tool, arguments = tools.get(str(params.get("name"))), params.get("arguments") or {}
        if tool is None or not isinstance(arguments, dict):
            raise RpcFailure(protocol.INVALID_PARAMS, "there is no such tool; tools/list names them")
        seconds = None if tool.waits or tool.is_whole else settings.request_secs
        call = _call(tool, desk, arguments, seconds, modern=is_modern)
        return await (unless_disconnected(request.receive, call) if tool.waits else call)
    raise RpcFailure(protocol.METHOD_NOT_FOUND, f"there is no method {method[:100]}")


def _find_tools(desk: Desk, settings: HttpSettings) -> dict[str, Tool]:
    """Those that the caller's token is good for. To decide must be allowed by the operator as well."""
    return {
        name: tool
        for name, tool in TOOLS.items()
        if tool.scope in desk.caller.scopes and (name != DECIDE or settings.mcp_decide)
    }


async def _call(tool: Tool, desk: Desk, arguments: Json, seconds: float | None, *, modern: bool) -> Json:
    """What a tool fails with is told to the model, which can do something else."""
    try:
        value = await _run(tool, desk, arguments, seconds)
    except InternalError:
        raise
    except ForgeAPIError as error:
        told: Json = {"error": error.message, "code": str(error.code)}
        return protocol.result(told, _write(told), is_error=True, modern=modern)
    return protocol.result(value, _write(value), is_error=False, modern=modern)


async def _run(tool: Tool, desk: Desk, arguments: Json, seconds: float | None) -> Json:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await tool.call(desk, arguments)
    except TimeoutError:
        if limit.expired():
            raise RequestTimedOut from None
        raise


def _write(value: Any) -> str:
    return orjson.dumps(value).decode()
