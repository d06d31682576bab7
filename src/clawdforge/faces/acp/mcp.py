"""MCP servers that an editor brings: a new session gets them, an old one keeps its own."""

from collections.abc import Sequence
from typing import Any, Final

from clawdforge.jsonrpc.rpc import INVALID_PARAMS, RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.mcp import escape_value

MAX_NAME_CHARS: Final = 200
MAX_NAMES: Final = 16


def read_servers(params: Json) -> dict[str, Json]:
    """As a session takes them. Raises RpcError for what cannot be passed on; nothing is left out."""
    return {name: _read_server(name[:MAX_NAME_CHARS], server) for name, server in _read_list(params).items()}


def describe_missing(params: Json, known: Sequence[str]) -> str:
    """What to tell of servers that the editor brings and an old session was made without; empty if none."""
    missing = sorted(set(_read_list(params)) - set(known))
    if not missing:
        return ""
    names = ", ".join(name[:MAX_NAME_CHARS] for name in missing[:MAX_NAMES])
    more = f" and {len(missing) - MAX_NAMES} more" if len(missing) > MAX_NAMES else ""
    return (
        f"This session was made without these MCP servers of your editor, and its agent does not have them: "
        f"{names}{more}. A new session gets them."
    )


def _read_list(params: Json) -> dict[str, Json]:
    servers = params.get("mcpServers") or []
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        raise RpcError(INVALID_PARAMS, "mcpServers must be a list of servers")
    found: dict[str, Json] = {}
    for server in servers:
        name = server.get("name")
        if not isinstance(name, str) or not name or name in found:
            raise RpcError(INVALID_PARAMS, "every MCP server needs a name of its own")
        found[name] = server
    return found


def _read_server(name: str, server: Json) -> Json:
    kind = server.get("type", "stdio")
    if kind == "http":
        return {"url": server.get("url"), "headers": _read_pairs(name, server.get("headers"))}
    if kind != "stdio":
        raise RpcError(INVALID_PARAMS, f"the MCP server {name!r} is neither a program nor reached over HTTP")
    words = server.get("args") or []
    if not isinstance(words, list):
        raise RpcError(INVALID_PARAMS, f"args of the MCP server {name!r} must be a list")
    return {"command": [server.get("command"), *words], "env": _read_pairs(name, server.get("env"))}


def _read_pairs(name: str, pairs: Any) -> Json:
    pairs = pairs or []
    if not isinstance(pairs, list) or not all(
        isinstance(pair, dict) and isinstance(pair.get("name"), str) for pair in pairs
    ):
        raise RpcError(INVALID_PARAMS, f"the MCP server {name!r} needs names and values in a list")
    return {pair["name"]: _escape(pair.get("value")) for pair in pairs}


def _escape(value: Any) -> Any:
    """An editor's values are meant as they stand: none of them may name a secret of the app."""
    return escape_value(value) if isinstance(value, str) else value
