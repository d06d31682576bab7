"""Forge routes for operators: apps and their limits, pauses, the sweep, the audit log, metrics."""

from collections.abc import Sequence
from typing import Annotated

from starlette.responses import PlainTextResponse, Response

from clawdforge.core.models.rows import AuditRow
from clawdforge.core.rules.mcp_servers import name_servers
from clawdforge.core.services.apps import AppState
from clawdforge.core.services.disk import Stored
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import json_response
from clawdforge.http.replies.prometheus import CONTENT_TYPE, render
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import AdminRoute, After, Core, Limit, has_own_limit
from clawdforge.wire.admin import (
    AppInfo,
    AppPage,
    AppReply,
    AppUsed,
    AuditEntry,
    AuditPage,
    AuditVerdict,
    PutApp,
    StuckReply,
    SweepReply,
)
from clawdforge.wire.base import to_iso, to_seconds
from clawdforge.wire.disk import AppDisk, DiskReply, SessionDisk
from clawdforge.wire.nodes import NodePage, NodeReply
from clawdforge.wire.pauses import PausePage, PauseReply, PauseRequest, ResumeReply, ResumeRequest

AppName = Annotated[str | None, Query(max_length=128)]
Cursor = Annotated[str | None, Query(max_length=1000)]
Secs = Annotated[float, Query(ge=0, le=10**9, allow_inf_nan=False)]
Head = Annotated[str | None, Query(pattern=r"^[0-9a-f]{64}$")]


def routes() -> Router:
    router = Router(AdminRoute, tags=["admin"])
    router.get("/admin/apps", response_model=AppPage)(list_apps)
    router.post("/admin/apps", response_model=AppReply)(put_app)
    router.get("/admin/pauses", response_model=PausePage)(list_pauses)
    router.post("/admin/pause", response_model=PauseReply)(pause)
    router.post("/admin/resume", response_model=ResumeReply)(resume)
    router.post("/admin/sweep", response_model=SweepReply)(sweep)
    router.get("/admin/stuck", response_model=StuckReply)(stuck)
    router.get("/admin/nodes", response_model=NodePage)(nodes)
    router.post("/admin/nodes/{node}/drain", response_model=NodeReply)(drain)
    router.delete("/admin/nodes/{node}/drain", response_model=NodeReply)(undrain)
    router.get("/admin/disk", response_model=DiskReply)(disk)
    router.get("/admin/audit", response_model=AuditPage)(audit)
    router.get("/admin/audit/verify", response_model=AuditVerdict)(verify)
    router.get("/metrics", response_class=PlainTextResponse)(metrics)
    return router


async def list_apps(core: Core) -> Response:
    """All apps with their limits, sessions and tokens."""
    apps = [_app(core, state) for state in await core.apps.list_apps()]
    return json_response(AppPage(apps=apps, count=len(apps)))


async def put_app(core: Core, body: PutApp) -> Response:
    """Create an app, or replace its limits, folders, MCP servers or secrets. What is left out stays."""
    state = await core.apps.put(
        body.app_name, body.limits, body.workspace_roots, body.mcp_servers, body.secrets
    )
    return json_response(AppReply(app=_app(core, state)))


async def list_pauses(core: Core) -> Response:
    """What is paused: everything, apps, agents. The widest come first."""
    pauses = [shapes.in_force(row) for row in await core.pauses.find_all()]
    return json_response(PausePage(pauses=pauses, count=len(pauses)))


@has_own_limit
async def pause(core: Core, body: PauseRequest) -> Response:
    """Stop turns from starting: all, those of an app, or those of an agent. `stop` cancels running ones.

    After this answer nothing starts there before `/admin/resume`, also after a restart. Prompts are refused
    with 503 `paused`; what is queued stays queued.
    """
    row, stopped = await core.pauses.pause(body)
    return json_response(PauseReply(pause=shapes.in_force(row), stopped=stopped))


async def resume(core: Core, body: ResumeRequest) -> Response:
    """End a pause, and start what waits there. Without a name, it ends the pause of the whole server."""
    was_paused, left = await core.pauses.resume(body)
    return json_response(ResumeReply(resumed=was_paused, pauses=[shapes.in_force(row) for row in left]))


async def sweep(core: Core) -> Response:
    """Sweep now: close idle sessions, and delete those that were closed long ago."""
    swept = await core.sweeper.sweep()
    return json_response(SweepReply(soft_closed=swept.soft_closed, hard_deleted=swept.hard_deleted))


async def stuck(core: Core, secs: Secs = 60.0) -> Response:
    """Sessions whose work has waited for the same thing for `secs`, and for what; the longest wait first."""
    return json_response(core.health.stuck(secs))


async def nodes(core: Core) -> Response:
    """The servers that share one database: which of them live, and how many sessions each of them runs."""
    found = [shapes.node(one) for one in await core.nodes.list()]
    return json_response(NodePage(nodes=found, count=len(found)))


async def drain(core: Core, node: str) -> Response:
    """Have a server leave its sessions to the others: it begins no turns, and finishes those that run.

    `is_drained` of `GET /admin/nodes` says when nothing is left. It answers requests all the while.
    """
    return json_response(NodeReply(node=shapes.node(await core.nodes.drain(node))))


async def undrain(core: Core, node: str) -> Response:
    """Take back a drain: the server begins turns again."""
    return json_response(NodeReply(node=shapes.node(await core.nodes.drain(node, is_over=True))))


async def disk(core: Core, app_name: AppName = None, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """What each app stores, by form, the largest first; with `app_name`, it and a page of its sessions."""
    apps = await core.disk.apps()
    if app_name is None:
        return json_response(_disk(apps))
    sessions, following = await core.disk.sessions(app_name, limit, cursor)
    rows = [SessionDisk(session_id=one.name, bytes=one.bytes, forms=_forms(one)) for one in sessions]
    reply = _disk([one for one in apps if one.name == app_name])
    return json_response(reply.model_copy(update={"sessions": rows, "next": following}))


async def audit(core: Core, app_name: AppName = None, after: After = 0, limit: Limit = 100) -> Response:
    """The audit log, oldest first; `app_name` shows one app's entries."""
    rows = await core.audit.page(app_name, after, limit + 1)
    page = [_entry(row) for row in rows[:limit]]
    following = page[-1].number if len(rows) > limit else None
    return json_response(AuditPage(entries=page, count=len(page), next=following))


async def verify(core: Core, head: Head = None) -> Response:
    """Whether the audit log is intact. With a `head` noted earlier, also whether its end is still there."""
    verdict = await core.audit.verify(head)
    return json_response(AuditVerdict(**verdict._asdict()))


async def metrics(core: Core) -> Response:
    """Metrics of the running server, in the text format of Prometheus."""
    return Response(render(await core.metrics.read()), headers={"Content-Type": CONTENT_TYPE})


def _app(core: Core, state: AppState) -> AppInfo:
    row = state.row
    allowed, used = core.apps.shares_of(state)
    return AppInfo(
        app_name=row.app_name,
        created_at=to_seconds(row.created_at),
        limits={name: value if name in allowed.own else None for name, value in allowed.limits.items()},
        allowed=allowed.limits,
        sources=allowed.sources,
        used=AppUsed.model_validate(used, from_attributes=True),
        workspace_roots=list(row.workspace_roots),
        mcp_servers=name_servers(row.mcp_servers),
        secrets=list(state.secrets),
        sessions=state.sessions,
        tokens=state.tokens,
        bytes_stored=used.bytes_stored,
        paused=shapes.pause(state.pause),
    )


def _disk(apps: Sequence[Stored]) -> DiskReply:
    rows = [
        AppDisk(app_name=one.name, bytes=one.bytes, max_bytes=one.most, forms=_forms(one)) for one in apps
    ]
    return DiskReply(bytes=sum(one.bytes for one in apps), apps=rows)


def _forms(stored: Stored) -> dict[str, int]:
    return {form.value: size for form, size in stored.forms.items()}


def _entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        number=row.number,
        app_name=row.app_name,
        session_id=row.session_id,
        event=row.event,
        at=to_iso(row.at),
        details=row.details,
        hash=row.hash,
    )
