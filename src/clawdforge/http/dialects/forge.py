"""The native dialect: all of its routers."""

from fastapi import APIRouter

from clawdforge.http.dialects import (
    forge_admin,
    forge_catalog,
    forge_events,
    forge_files,
    forge_history,
    forge_operator,
    forge_sessions,
    forge_turns,
    forge_upkeep,
)


def routers() -> list[APIRouter]:
    return [
        forge_admin.open_routes(),
        forge_history.routes(),
        forge_sessions.routes(),
        forge_turns.routes(),
        forge_events.routes(),
        forge_upkeep.routes(),
        forge_files.form_routes(),
        forge_files.routes(),
        forge_catalog.run_routes(),
        forge_catalog.routes(),
        forge_admin.admin_routes(),
        forge_operator.routes(),
    ]
