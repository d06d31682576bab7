"""The settings of the HTTP layer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from clawdforge.core.ports import Callers

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """`stopping` is set when the server begins to stop: open streams end at once.

    `callers` tells who is at the other end of a connection; without it nobody is trusted. `serve_editor` is
    the agent that editors speak to; it is given an `EditorCall`, whose module few servers import.
    """

    stopping: asyncio.Event
    bind_host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    trust_loopback: bool = False
    hermes_prefix: str = ""
    faces: tuple[str, ...] = ()
    mcp_decide: bool = False
    openai_chat_header: str = "X-OpenWebUI-Chat-Id"
    openai_history: Literal["refuse", "fork"] = "refuse"
    openai_permissions: Literal["deny", "wait"] = "deny"
    max_body_bytes: int = 32 * MIB
    max_bodies_bytes: int = 256 * MIB
    max_file_bytes: int = 1024 * MIB
    heartbeat_secs: float = 15.0
    request_secs: float = 900.0
    version: str = ""
    callers: Callers | None = None
    serve_editor: Callable[[Any], Awaitable[None]] | None = None
    admin_over_tcp: bool = True
