"""What the settings allow everybody, in the words of each part that keeps to it."""

from typing import Final

from clawdforge.core.rules.quotas import Quotas
from clawdforge.core.rules.retention import Ages
from clawdforge.core.running.attendant import Times
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.all import Bounds
from clawdforge.core.services.shares import Share
from clawdforge.http.connections.door import DoorLimits
from clawdforge.listeners import raise_descriptor_limit
from clawdforge.settings import Settings

INTRODUCE_TIMES: Final = 3
"""An editor has so many times as long for its first message as others have for their headers."""


def find_bounds(settings: Settings) -> Bounds:
    return Bounds(
        live_agents=settings.max_live_agents,
        file_bytes=settings.max_file_bytes,
        agent_idle_secs=settings.agent_idle_secs,
        spare_agents=settings.spare_agents,
        permission_secs=settings.permission_timeout_secs,
        times=Times(
            turn=settings.turn_timeout_secs,
            cancel_grace=settings.cancel_grace_secs,
            retries=settings.turn_retries,
        ),
        share=Share(
            max_requests_per_sec=settings.app_requests_per_sec,
            max_open_requests=settings.app_open_requests,
            max_readers=settings.app_readers,
        ),
        quotas=Quotas(
            bytes=settings.app_bytes or None,
            agents=settings.app_agents or None,
            sessions=settings.app_sessions or None,
            turns=settings.app_turns or None,
            live_sessions=settings.max_live_sessions,
            exempt=LOCAL_APP,
        ),
        ages=Ages(
            idle=settings.session_ttl_secs,
            closed=settings.session_hard_ttl_secs,
            upload=settings.file_ttl_secs,
            run=settings.run_ttl_secs,
            event=settings.pack_after_secs,
            usage=settings.usage_ttl_secs,
        ),
    )


def find_door_limits(settings: Settings) -> DoorLimits:
    """Half of all descriptors are for connections, and a quarter for those who wait before the door; the rest
    is for the store, agents and files."""
    descriptors = raise_descriptor_limit()
    return DoorLimits(
        connections=max(1, min(settings.max_connections, descriptors // 2)),
        silent=max(1, min(settings.max_connections, descriptors // 8)),
        per_peer=settings.max_connections_per_peer,
        header_secs=settings.header_timeout_secs,
        body_secs=settings.body_timeout_secs,
        send_secs=settings.send_timeout_secs,
        idle_secs=settings.keep_alive_secs,
    )


def find_introduce_secs(settings: Settings) -> float:
    return INTRODUCE_TIMES * settings.header_timeout_secs
