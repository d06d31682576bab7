"""Routes of hermes that this server does not serve: each answers 501 and says why, whatever it is sent."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from starlette.responses import Response

from clawdforge.http.dialects.hermes.route import HermesRoute
from clawdforge.http.routers import Router
from clawdforge.wire.errors import Unsupported

WHY_NOT: Final[Mapping[str, tuple[str, ...]]] = {
    "approvals come from agents only": ("GET /api/approval/inject_test",),
    "ask /api/approval/pending": ("GET /api/approval/stream",),
    "agents ask for permissions only; see /api/approval/pending": (
        *("GET /api/clarify/inject_test", "GET /api/clarify/stream", "POST /api/clarify/respond"),
    ),
    "log in with a token, as the password": (
        *("GET /api/auth/oidc/callback", "GET /api/auth/oidc/start", "POST /api/auth/passkey/delete"),
        *(
            "POST /api/auth/passkey/login",
            "POST /api/auth/passkey/options",
            "POST /api/auth/passkey/register",
        ),
        *("POST /api/auth/passkey/register/options", "POST /api/auth/passkeys"),
    ),
    "start the prompt by /api/chat/start and read its stream": ("POST /api/chat",),
    "every turn runs in the background here": ("POST /api/background", "POST /api/bg-task-complete-ack"),
    "nothing runs beside a session's turns": ("POST /api/process-complete-ack",),
    "make a sub-session, or a branch": ("POST /api/btw",),
    "goals belong to the agent": ("POST /api/goal",),
    "commands belong to the agent; send one as a prompt": (
        *("POST /api/commands/exec", "POST /api/commands/bundles/resolve", "GET /api/commands/moa/resolve"),
    ),
    "schedules are made by POST /schedules or `clawdforge schedules`, not in this dialect": (
        *("GET /api/crons", "GET /api/crons/delivery-options", "GET /api/crons/history"),
        *("GET /api/crons/output", "GET /api/crons/run", "POST /api/crons/create", "POST /api/crons/delete"),
        *("POST /api/crons/pause", "POST /api/crons/resume", "POST /api/crons/run"),
        *("POST /api/crons/update",),
    ),
    "the agent works in the workspace; uploads go to /api/upload, and there is no file browser": (
        *("GET /api/escape/file/raw", "GET /api/escape/file/read", "GET /api/escape/list"),
        *("GET /api/file", "GET /api/file/raw", "GET /api/folder/download", "GET /api/media"),
        *("POST /api/escape/authorize", "POST /api/file/create", "POST /api/file/create-dir"),
        *("POST /api/file/delete", "POST /api/file/move", "POST /api/file/office-save"),
        *("POST /api/file/open-vscode", "POST /api/file/path", "POST /api/file/rename"),
        *("POST /api/file/reveal", "POST /api/file/save", "POST /api/upload/extract"),
        *("POST /api/workspace/upload",),
    ),
    "the agent works with git in the workspace; there is no view of it": (
        *("GET /api/git/{rest}", "POST /api/git/{rest}", "GET /api/session/worktree/status"),
        *("POST /api/session/worktree/remove",),
    ),
    "undo with files by POST /sessions/{id}/undo": (
        *("GET /api/rollback/diff", "GET /api/rollback/list", "POST /api/rollback/restore"),
    ),
    "the server has no boards": (
        *(f"{method} /api/kanban/{{rest}}" for method in ("DELETE", "GET", "PATCH", "POST", "PUT")),
        *("GET /api/project-os/dashboard",),
    ),
    "MCP servers and plugins belong to the agent": (
        *("GET /api/mcp/{rest}", "DELETE /api/mcp/{rest}", "PATCH /api/mcp/{rest}", "PUT /api/mcp/{rest}"),
        *("POST /api/mcp/{rest}", "GET /api/plugins", "GET /api/extensions/{rest}"),
        *("POST /api/extensions/{rest}",),
    ),
    "an agent keeps its own memory in its home; the server does not read it": (
        *("GET /api/memory", "POST /api/memory/write", "GET /api/notes/{rest}", "GET /api/wiki/{rest}"),
    ),
    "name the model when a session is made, or in /api/session/update": (
        *("GET /api/model/auxiliary", "GET /api/models/live", "POST /api/default-model"),
        *("POST /api/model/set", "POST /api/models/refresh", "GET /api/provider/{rest}"),
        *("GET /api/providers", "POST /api/providers", "POST /api/providers/{rest}"),
        *("POST /api/reasoning",),
    ),
    "an app is the tenant here, and a persona names an agent; see /personas": (
        *("GET /api/personalities", "POST /api/personality/set", "POST /api/profile/create"),
        *("POST /api/profile/delete", "POST /api/profile/switch"),
    ),
    "sessions have labels and a project key of their folder, not projects": (
        *("POST /api/projects/create", "POST /api/projects/delete", "POST /api/projects/rename"),
        *("POST /api/session/move",),
    ),
    "prompts are not stored for later": ("POST /api/prompts", "DELETE /api/prompts"),
    "the agent compacts by itself, or by POST /sessions/{id}/compact": (
        *("POST /api/session/compress", "POST /api/session/compress/start"),
        *("POST /api/session/compression-recovery/start", "POST /api/session/conversation-rounds"),
        *("POST /api/session/handoff-summary",),
    ),
    "import transcript files with POST /sessions/import": ("POST /api/session/import_cli",),
    "nothing needs repair; see GET /sessions/{id}/events": (
        *("GET /api/session/recovery/audit", "POST /api/session/recovery/repair-safe"),
    ),
    "a title is the start of the first message, or what a person chose": (
        "POST /api/session/title/regenerate",
    ),
    "an agent's tools are its own": ("POST /api/session/toolsets",),
    "set permission_mode by PATCH /sessions/{id}": ("POST /api/session/yolo",),
    "parent_session_id names where a branch came from": ("GET /api/session/lineage/report",),
    "follow a session by GET /sessions/{id}/events or /api/sessions/{id}/stream": (
        *("GET /api/sessions/{session_id}/events", "GET /api/sessions/gateway/stream"),
    ),
    "sessions are deleted one by one; see /api/session/delete": (
        *("POST /api/sessions/cleanup", "POST /api/sessions/cleanup_zero_message"),
    ),
    "share a session by POST /sessions/{id}/shares, and revoke it there": (
        *("GET /api/share/{rest}", "POST /api/share/create", "POST /api/share/revoke"),
    ),
    "skills belong to the agent and its workspace": (
        *("GET /api/skills/content", "GET /api/skills/usage", "POST /api/skills/delete"),
        *("POST /api/skills/save", "POST /api/skills/toggle"),
    ),
    "the server neither hears nor speaks": (*("POST /api/transcribe", "POST /api/tts"),),
    "there are no terminals": ("GET /api/terminal/{rest}", "POST /api/terminal/{rest}"),
    "the operator runs, watches and updates the server, in the way it was installed; see /healthz": (
        *(
            "GET /api/gateway/status",
            "GET /api/health/agent",
            "GET /api/insights",
            "GET /api/logs",
            "GET /api/system/health",
        ),
        *(
            "GET /api/updates/check",
            "POST /api/updates/check",
            "POST /api/admin/reload",
            "POST /api/client-events/log",
        ),
        *("POST /api/csp-report", "POST /api/dashboard/config", "POST /api/gateway/{rest}"),
        *("POST /api/health/restart", "POST /api/shutdown", "POST /api/updates/{rest}"),
    ),
    "settings are the operator's: a file, variables or flags of the server": (
        *("GET /api/onboarding/oauth/poll", "POST /api/onboarding/complete"),
        *("POST /api/onboarding/oauth/cancel", "POST /api/onboarding/oauth/start"),
        *("POST /api/onboarding/probe", "POST /api/onboarding/setup"),
    ),
    "name the workspace when a session is made; the server keeps no list of folders": (
        *("GET /api/workspaces/suggest", "POST /api/workspaces/add", "POST /api/workspaces/remove"),
        *("POST /api/workspaces/rename", "POST /api/workspaces/reorder"),
    ),
}
"""Why not, and what: all that two versions of its page call, and their servers have. `{rest}` is any path."""

UNSERVED: Final[Mapping[str, str]] = {route: why for why, routes in WHY_NOT.items() for route in routes}
"""Method and path, and why not."""


class RefusingRoute(HermesRoute):
    """Does not look at what it is sent: it would refuse a file for not being JSON."""

    takes_json = False


def routes(prefix: str) -> Router:
    found = Router(RefusingRoute, prefix=prefix, tags=["hermes dialect"], include_in_schema=False)
    for route, reason in UNSERVED.items():
        method, _, path = route.partition(" ")
        found.add(method, path.replace("{rest}", "{rest:path}"), _make_refusal(reason))
    return found


def _make_refusal(reason: str) -> Callable[[], Coroutine[Any, Any, Response]]:
    async def refuse() -> Response:
        raise Unsupported(f"not served here: {reason}")

    refuse.__doc__ = f"Not served: {reason}."
    return refuse
