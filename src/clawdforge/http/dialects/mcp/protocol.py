"""The messages of MCP, of both generations: with a handshake until 2025, with an envelope in each since 2026.

Nothing is kept between two messages, so every request can be answered by itself.
"""

from collections.abc import Sequence
from typing import Any, Final

from clawdforge.wire.base import Json

MODERN: Final = ("2026-07-28",)
HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
VERSION: Final = "io.modelcontextprotocol/protocolVersion"
SERVER: Final = "io.modelcontextprotocol/serverInfo"
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
UNSUPPORTED_VERSION: Final = -32022
INSTRUCTIONS: Final = (
    "Sessions with coding agents that outlive you. `start` begins one and returns at once; `wait` brings its"
    " answer a part at a time; `send` goes on with it."
)


class RpcFailure(Exception):
    """An error of the protocol itself. What a tool fails with is a result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message, **({} if data is None else {"data": data})}


def find_version(params: Json) -> str | None:
    """The version in the envelope of a request; None for one that follows a handshake."""
    meta = params.get("_meta")
    found = meta.get(VERSION) if isinstance(meta, dict) else None
    if found is not None and found not in MODERN:
        known = {"supported": [*MODERN, *HANDSHAKE], "requested": str(found)[:100]}
        raise RpcFailure(UNSUPPORTED_VERSION, "this version of the protocol is not spoken here", known)
    return found


def initialize(params: Json, version: str) -> Json:
    """The answer to the handshake; `version` is the program's."""
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in HANDSHAKE else HANDSHAKE[0],
        "capabilities": {"tools": {}},
        "serverInfo": _introduce(version),
        "instructions": INSTRUCTIONS,
    }


def discover(version: str) -> Json:
    return {
        "supportedVersions": [*MODERN, *HANDSHAKE],
        "capabilities": {"tools": {}},
        "instructions": INSTRUCTIONS,
        "_meta": {SERVER: _introduce(version)},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }


def list_tools(tools: Sequence[Json], *, modern: bool) -> Json:
    more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {}
    return {"tools": list(tools), **more}


def result(value: Json, text: str, *, is_error: bool, modern: bool) -> Json:
    """What a tool returned: for models as text, for programs as values."""
    found: Json = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if not is_error:
        found["structuredContent"] = value
    return {**found, "resultType": "complete"} if modern else found


def _introduce(version: str) -> Json:
    return {"name": "clawdforge", "title": "clawdforge", "version": version or "0"}
