"""The settings of the HTTP layer."""

import asyncio
from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """`stopping` is set when the server begins to stop: open streams end at once."""

    stopping: asyncio.Event
    bind_host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    trust_loopback: bool = False
    hermes_prefix: str = ""
    max_body_bytes: int = 32 * MIB
    max_file_bytes: int = 1024 * MIB
    heartbeat_secs: float = 15.0
    version: str = ""
