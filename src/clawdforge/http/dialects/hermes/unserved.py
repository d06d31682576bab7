"""Routes of hermes that this server does not serve: each answers 501 and says why."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from fastapi import APIRouter

from clawdforge.http.dialects.hermes.route import router
from clawdforge.wire.errors import Unsupported

CLARIFY: Final = "agents ask for permissions only; see /api/approval/pending"
CRONS: Final = "the server has no scheduler; call /api/chat/start from a timer of your own"
FILES: Final = "the agent works in the workspace; uploads go to /files, and there is no file browser"
MEMORY: Final = "an agent keeps its own memory in its home; the server does not read it"
MODELS: Final = "model names are handed to the agent as given; GET /agents lists the agents"
PROFILES: Final = "an app is the tenant here, and a persona names an agent; see /personas"
PROJECTS: Final = "sessions have labels and a project key of their folder, not projects"
SETTINGS: Final = "settings are the operator's: a file, variables or flags of the server"
SKILLS: Final = "skills belong to the agent and its workspace"
UPDATES: Final = "update the server in the way it was installed"
WORKSPACES: Final = "name the workspace when a session is made; the server keeps no list of folders"
CLEAN_UP: Final = "sessions are deleted one by one; see /api/session/delete"
LIVE: Final = "follow a session by GET /sessions/{id}/events or /api/sessions/{id}/stream"
COMPRESS: Final = "the agent compacts by itself, or by POST /sessions/{id}/compact"

UNSERVED: Final[Mapping[str, str]] = {
    "GET /api/approval/inject_test": "approvals come from agents only",
    "POST /api/chat": "start the prompt by /api/chat/start and read its stream",
    "GET /api/clarify/inject_test": CLARIFY,
    "POST /api/clarify/respond": CLARIFY,
    "GET /api/crons": CRONS,
    "GET /api/crons/output": CRONS,
    "POST /api/crons/create": CRONS,
    "POST /api/crons/delete": CRONS,
    "POST /api/crons/pause": CRONS,
    "POST /api/crons/resume": CRONS,
    "POST /api/crons/run": CRONS,
    "POST /api/crons/update": CRONS,
    "GET /api/file": FILES,
    "GET /api/file/raw": FILES,
    "GET /api/media": FILES,
    "POST /api/file/create": FILES,
    "POST /api/file/delete": FILES,
    "POST /api/file/rename": FILES,
    "POST /api/file/save": FILES,
    "POST /api/transcribe": "the server does not transcribe speech",
    "GET /api/memory": MEMORY,
    "POST /api/memory/write": MEMORY,
    "GET /api/models": MODELS,
    "GET /api/models/live": MODELS,
    "POST /api/onboarding/complete": SETTINGS,
    "POST /api/onboarding/setup": SETTINGS,
    "GET /api/personalities": PROFILES,
    "POST /api/personality/set": PROFILES,
    "POST /api/profile/create": PROFILES,
    "POST /api/profile/delete": PROFILES,
    "POST /api/profile/switch": PROFILES,
    "POST /api/projects/create": PROJECTS,
    "POST /api/projects/delete": PROJECTS,
    "POST /api/projects/rename": PROJECTS,
    "POST /api/session/move": PROJECTS,
    "POST /api/session/compress": COMPRESS,
    "POST /api/session/compress/start": COMPRESS,
    "POST /api/session/import_cli": "import transcript files with POST /sessions/import",
    "GET /api/sessions/{session_id}/events": LIVE,
    "POST /api/session/title/regenerate": "a title is the start of the first message, or what a person chose",
    "POST /api/session/toolsets": "an agent's tools are its own",
    "POST /api/session/yolo": "set permission_mode by PATCH /sessions/{id}",
    "GET /api/session/lineage/report": "parent_session_id names where a branch came from",
    "POST /api/share/create": "share a session by POST /sessions/{id}/shares",
    "POST /api/share/revoke": "revoke a share by DELETE /sessions/{id}/shares/{share_id}",
    "POST /api/sessions/cleanup": CLEAN_UP,
    "POST /api/sessions/cleanup_zero_message": CLEAN_UP,
    "POST /api/btw": "make a sub-session, or a branch",
    "POST /api/background": "every turn runs in the background here",
    "POST /api/goal": "goals belong to the agent",
    "GET /api/skills/content": SKILLS,
    "POST /api/skills/delete": SKILLS,
    "POST /api/skills/save": SKILLS,
    "GET /api/updates/check": UPDATES,
    "POST /api/updates/apply": UPDATES,
    "POST /api/workspaces/add": WORKSPACES,
    "POST /api/workspaces/remove": WORKSPACES,
    "POST /api/workspaces/rename": WORKSPACES,
}
"""Method and path, and why not."""


def routes(prefix: str) -> APIRouter:
    found = router(prefix)
    for route, reason in UNSERVED.items():
        method, _, path = route.partition(" ")
        found.add_api_route(path, _make_refusal(reason), methods=[method], include_in_schema=False)
    return found


def _make_refusal(reason: str) -> Callable[[], Coroutine[Any, Any, None]]:
    async def refuse() -> None:
        raise Unsupported(f"not served here: {reason}")

    refuse.__doc__ = f"Not served: {reason}."
    return refuse
