"""The settings that servers of one database should share, as digests that can be compared and not read."""

import hashlib
import json
from typing import Final

from clawdforge.settings.model import Settings

SHARED: Final = (
    *("lease_secs", "session_ttl_secs", "session_hard_ttl_secs", "file_ttl_secs", "run_ttl_secs"),
    *("usage_ttl_secs", "pack_after_secs", "max_live_sessions", "max_live_agents", "app_requests_per_sec"),
    *("app_open_requests", "app_readers", "app_bytes", "app_agents", "app_sessions", "app_turns"),
    *("turn_timeout_secs", "turn_retries"),
    *(
        "permission_timeout_secs",
        "max_body_bytes",
        "max_file_bytes",
        "sandbox",
        "agent_network",
        "agent_hosts",
    ),
    *("webhooks", "webhook_hosts", "schedules", "agent_max_processes", "agent_max_memory_bytes"),
    *("default_agent", "agents", "mcp_servers", "blobs", "publish_bytes", "graphs_database_url"),
)
"""Whoever is asked should answer the same, and whoever has a duty should do the same."""
DIGITS: Final = 4
"""Few, since some of the settings are secrets: enough to see a difference, and too few to guess by."""


def digest_shared(settings: Settings, admin_token: str) -> dict[str, str]:
    """By the names of the settings; the operator's token among them, also where a server made its own."""
    values = settings.model_dump(mode="json", include=set(SHARED))
    return {name: _digest(name, value) for name, value in {**values, "admin_token": admin_token}.items()}


def _digest(name: str, value: object) -> str:
    text = json.dumps([name, value], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
