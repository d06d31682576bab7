"""What the page of hermes asks for and this server has none of: true, empty answers, which keep it quiet."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Final

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.access.auth import require_app
from clawdforge.http.dialects.hermes.route import OpenHermesRoute, SessionId, router
from clawdforge.http.dialects.hermes.shapes import OWN_MODEL, PROFILE
from clawdforge.http.errors import json_response
from clawdforge.http.requests.marks import Body
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, Core
from clawdforge.wire.base import Json
from clawdforge.wire.errors import Forbidden, Unauthenticated, Unsupported
from clawdforge.wire.hermes import AuthStatus
from clawdforge.wire.session import PermissionMode

Handler = Callable[..., Coroutine[Any, Any, Response]]
SETTINGS: Final[Json] = {
    "check_for_updates": False,
    "default_message_mode": "queue",
    "default_model": "",
    "default_workspace": "",
    "show_cli_sessions": False,
}
"""Settings of the page for which its own defaults are not right here."""

PASSWORD: Final = frozenset({"_set_password", "_clear_password"})
NOBODY: Final[Json] = {"name": PROFILE, "path": "", "is_default": True}
ONE_PROFILE: Final[Json] = {**NOBODY, "is_active": True, "skill_count": 0, "gateway_running": False}


async def keep_settings(body: Annotated[Json, Body()]) -> Response:
    """The settings as they are. None is kept: the page remembers its own for as long as it is open."""
    if body.keys() & PASSWORD:
        raise Unsupported("there is no password to set; the operator makes tokens, and revokes them")
    return json_response({"ok": True, **SETTINGS, "saved": False})


async def yolo(core: Core, app: App, session_id: SessionId) -> Response:
    """Whether everything is approved in a session without being asked for."""
    state = await core.sessions.get(app, session_id)
    enabled = state.row.permission_mode is PermissionMode.APPROVE_ALL
    return json_response({"ok": True, "yolo_enabled": enabled})


async def models(core: Core, app: App) -> Response:
    """The models that the page can choose: the agent's own, and those that the app has named before."""
    names = [name for name in await core.sessions.models(app) if name != OWN_MODEL]
    found = [{"id": OWN_MODEL, "label": "The agent's own"}, *({"id": name, "label": name} for name in names)]
    group = {"provider": "Models", "provider_id": "models", "models": found}
    told = {"active_provider": None, "default_model": OWN_MODEL, "groups": [group]}
    return json_response({"ok": True, **told})


async def auth_status(request: Request) -> Response:
    """Whether the caller is logged in. A login is always needed, except where the loopback is trusted."""
    trusts = request.app.state.settings.trust_loopback
    try:
        await require_app(request)
        known = True
    except (Unauthenticated, Forbidden):
        if "authorization" in request.headers:  # a token that is wrong is said to be, here as everywhere
            raise
        known = False
    return json_response(AuthStatus(auth_enabled=not (trusts and known), logged_in=known))


def _say(about: str, answer: Json) -> Handler:
    async def reply() -> Response:
        return json_response({"ok": True, **answer})

    reply.__doc__ = about
    return reply


QUIET: Final[Mapping[str, Handler]] = {
    "GET /api/background/status": _say("Nothing runs beside a session's turns.", {"results": []}),
    "GET /api/clarify/pending": _say(
        "Agents ask for permissions only, so no question waits.",
        {"pending": None, "pending_count": 0},
    ),
    "GET /api/commands": _say("The page's own commands are all there are.", {"commands": []}),
    "GET /api/commands/bundles": _say("There are no bundles of commands.", {"bundles": []}),
    "GET /api/crons/recent": _say(
        "Schedules are not in this dialect, so nothing has run.", {"completions": []}
    ),
    "GET /api/crons/status": _say("Schedules are not in this dialect, so nothing runs.", {"running": {}}),
    "GET /api/list": _say(
        "There is no file browser: no entries, whatever the workspace has.",
        {"entries": [], "path": "."},
    ),
    "GET /api/dashboard/config": _say("There is no dashboard to link to.", {"enabled": "never", "url": ""}),
    "GET /api/dashboard/status": _say(
        "There is no dashboard to link to.", {"running": False, "enabled": "never"}
    ),
    "GET /api/git-info": _say("There is no view of git.", {"git": None}),
    "GET /api/models": models,
    "GET /api/onboarding/status": _say(
        "Nothing is to be set up in the page.",
        {
            "completed": True,
            "settings": {"default_workspace": "", "default_model": ""},
            "setup": {"current": {}},
            "workspaces": {"items": [], "last": ""},
        },
    ),
    "GET /api/profile/active": _say("There is one profile.", NOBODY),
    "GET /api/profiles": _say("There is one profile.", {"profiles": [ONE_PROFILE], "active": PROFILE}),
    "GET /api/projects": _say("There are no projects.", {"projects": []}),
    "GET /api/prompts": _say("There are no stored prompts.", {"prompts": []}),
    "GET /api/reasoning": _say(
        "How much an agent thinks is its own affair.",
        {
            "show_reasoning": True,
            "reasoning_effort": "",
            "supported_efforts": [],
            "supports_thinking_toggle": False,
        },
    ),
    "GET /api/session/compress/status": _say("Nothing is being compressed.", {"status": "idle"}),
    "GET /api/session/draft": _say("Drafts are not kept here.", {"draft": {}}),
    "POST /api/session/draft": _say("Drafts are not kept here.", {"draft": {}, "saved": False}),
    "POST /api/session/anchor-scene": _say(
        "How the page drew an answer is not kept; it is drawn anew.",
        {"saved": False},
    ),
    "POST /api/settings": keep_settings,
    "GET /api/session/yolo": yolo,
    "GET /api/settings": _say("The page's own defaults are its settings, but for these.", SETTINGS),
    "GET /api/skills": _say("Skills belong to the agent; the server knows none.", {"skills": []}),
    "GET /api/transcribe/capability": _say(
        "The server does not hear; the page uses what the browser has.",
        {"available": False, "provider": None},
    ),
    "GET /api/workspaces": _say("There is no list of folders.", {"workspaces": [], "last": ""}),
}
"""Method and path, and the handler."""


def routes(prefix: str) -> Router:
    found = router(prefix)
    for route, handler in QUIET.items():
        method, _, path = route.partition(" ")
        found.add(method, path, handler, include_in_schema=False)
    return found


def open_routes(prefix: str) -> Router:
    found = Router(OpenHermesRoute, prefix=prefix, tags=["hermes dialect"])
    found.get("/api/auth/status", response_model=AuthStatus)(auth_status)
    return found
