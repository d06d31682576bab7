"""The native dialect: all of its routers."""

from clawdforge.http.dialects.forge import (
    admin,
    budgets,
    catalog,
    changes,
    events,
    files,
    history,
    links,
    operator,
    schedules,
    sessions,
    tokens,
    turn_changes,
    turns,
    upkeep,
    usage,
    webhooks,
)
from clawdforge.http.routers import Router


def routers() -> list[Router]:
    return [
        admin.open_routes(),
        history.routes(),
        sessions.routes(),
        turns.routes(),
        turn_changes.routes(),
        events.routes(),
        changes.routes(),
        links.routes(),
        links.shared_routes(),
        webhooks.routes(),
        schedules.routes(),
        upkeep.routes(),
        files.form_routes(),
        files.routes(),
        catalog.run_routes(),
        catalog.routes(),
        tokens.routes(),
        budgets.routes(),
        budgets.admin_routes(),
        admin.admin_routes(),
        operator.routes(),
        usage.routes(),
        usage.admin_routes(),
    ]
