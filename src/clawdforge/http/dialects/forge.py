"""The native dialect: all of its routers."""

from fastapi import APIRouter

from clawdforge.http.dialects import forge_admin, forge_events, forge_sessions, forge_turns


def routers() -> list[APIRouter]:
    return [
        forge_admin.open_routes(),
        forge_sessions.routes(),
        forge_turns.routes(),
        forge_events.routes(),
        forge_admin.admin_routes(),
    ]
