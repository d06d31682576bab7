"""hermes routes about sessions as such: make, import, read, change, delete, export, find."""

from functools import partial
from typing import Annotated, Literal

import orjson
from starlette.responses import Response

from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.rules.transcripts import Transcript
from clawdforge.core.services.all import Services
from clawdforge.http.dialects.hermes import shapes
from clawdforge.http.dialects.hermes.route import Page, SessionId, router, whole_reply
from clawdforge.http.errors import json_response
from clawdforge.http.replies.piecewise import piecewise, slices
from clawdforge.http.replies.transcript_page import page as write_page
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import MAX_CURSOR, App, Caller, Core, takes_many_values
from clawdforge.wire.admin import Done
from clawdforge.wire.base import to_float
from clawdforge.wire.errors import InvalidRequest, SessionNotFound, Unsupported, WorkspaceRefused
from clawdforge.wire.hermes import (
    Archive,
    HermesList,
    HermesSessionReply,
    HermesStatus,
    HermesUsage,
    ImportSession,
    NewSession,
    Pin,
    Rename,
    SessionRef,
    Update,
)
from clawdforge.wire.session import CreateSession, ImportRequest, PatchSession, Retention

MAX_LISTED = 1000
FOUND = 100
MOST_PINNED = 3
UTC = "+0000"
NO_ID = "/\\"
"""What no id has, of any server of this dialect, and a path has."""
Words = Annotated[str, Query(max_length=500)]
MAX_SHOWN = 1000
MessageLimit = Annotated[int | None, Query(ge=0, le=MAX_SHOWN)]
MessageNumber = Annotated[int | None, Query(ge=0, le=MAX_CURSOR)]


def routes(prefix: str) -> Router:
    found = router(prefix)
    found.post("/api/session/new", response_model=HermesSessionReply)(new)
    found.post("/api/session/import", response_model=HermesSessionReply)(import_session)
    found.get("/api/session", response_model=HermesSessionReply)(session)
    found.get("/api/session/status", response_model=HermesStatus)(status)
    found.get("/api/session/usage", response_model=HermesUsage)(usage)
    found.get("/api/session/export", response_class=Response)(export)
    found.post("/api/session/rename", response_model=HermesSessionReply)(rename)
    found.post("/api/session/update", response_model=HermesSessionReply)(update)
    found.post("/api/session/pin", response_model=HermesSessionReply)(pin)
    found.post("/api/session/archive", response_model=HermesSessionReply)(archive)
    found.post("/api/session/delete", response_model=Done)(delete)
    found.get("/api/sessions/search", response_model=HermesList)(search)
    return found


def list_routes(prefix: str) -> Router:
    found = router(prefix)
    found.get("/api/sessions", response_model=HermesList)(list_sessions)
    return found


async def new(core: Core, caller: Caller, page: Page, body: NewSession) -> Response:
    """Make an empty session; it is kept until somebody deletes it."""
    model = shapes.chosen_model(body.model)
    noted = {
        "profile": None if body.profile == shapes.PROFILE else body.profile,
        shapes.PROVIDER: body.model_provider if model else None,
    }
    request = CreateSession(
        cwd=find_named(core, body.workspace),
        model=model,
        permission_mode=body.permission_mode,
        meta={name: value for name, value in noted.items() if value} or None,
        retention=Retention.KEEP,
    )
    made = await core.sessions.create(caller.app, request, may_decide=caller.may_decide)
    return await _whole(core, caller.app, made.row.session_id, page)


@takes_many_values
async def import_session(core: Core, caller: Caller, page: Page, body: ImportSession) -> Response:
    """Make a session from a transcript. Its id is always fresh; its rows keep their roles and order.

    A workspace that is not there, as on another machine, is replaced by a folder of the session's own.
    """
    request = ImportRequest(
        messages=shapes.put_calls_inside(body.messages, body.tool_calls or []),
        title=shapes.clean_title(body.title or "") or None,
        model=shapes.chosen_model(body.model),
        cwd=find_named(core, body.workspace),
        retention=Retention.KEEP,
    )
    app, may_decide = caller.app, caller.may_decide
    try:
        made = await core.transfer.import_session(app, request, may_decide=may_decide)
    except WorkspaceRefused:
        request = request.model_copy(update={"cwd": None})
        made = await core.transfer.import_session(app, request, may_decide=may_decide)
    if body.pinned:
        await core.sessions.patch(app, made.row.session_id, PatchSession(pinned=True))
    return await _whole(core, app, made.row.session_id, page)


async def session(
    core: Core,
    app: App,
    page: Page,
    session_id: SessionId,
    messages: bool = True,
    msg_limit: MessageLimit = None,
    msg_before: MessageNumber = None,
) -> Response:
    """A session with its transcript; `messages=0` leaves it out, `msg_limit` shows only its newest part.

    With `msg_before` it is the part before that message, counted from the first.
    """
    limit = msg_limit if messages else 0
    if msg_before is not None and limit is None:
        limit = MAX_SHOWN
    found = await core.messages.transcript(app, session_id, limit, before=msg_before, with_cut_off=page)
    return await whole_reply(core, app, found, page)


async def status(core: Core, app: App, page: Page, session_id: SessionId) -> Response:
    """What a session is doing."""
    found = await core.messages.transcript(app, session_id, 0, with_cut_off=page)
    return json_response(shapes.status(found, page))


async def usage(core: Core, app: App, session_id: SessionId) -> Response:
    """The tokens that the agent reported."""
    state = await core.sessions.get(app, session_id)
    return json_response(shapes.usage(state.row))


async def export(
    core: Core,
    app: App,
    session_id: SessionId,
    format: Literal["json", "html"] = "json",  # noqa: A002 - the parameter's name on the wire
) -> Response:
    """The whole session as a file that can be imported again, or with `format=html` as a page to read."""
    found = await core.messages.transcript(app, session_id)
    row, pause = found.state.row, partial(core.loop_turns.slice, app)
    if format == "html":
        reply = await piecewise(write_page(row, found.messages), "text/html; charset=utf-8", pause)
    else:
        body = await core.computing.run(app, partial(_encode_file, found))
        reply = await piecewise(slices(body), "application/json", pause)
    reply.headers["Content-Disposition"] = f'attachment; filename="hermes-{row.session_id}.{format}"'
    return reply


async def rename(core: Core, app: App, page: Page, body: Rename) -> Response:
    """Change a session's title."""
    change = PatchSession(title=shapes.clean_title(body.title))
    await core.sessions.patch(app, body.session_id, change)
    return await _compact(core, app, body.session_id, page)


async def update(core: Core, app: App, page: Page, body: Update) -> Response:
    """Change a session's model; the agent keeps its memory. The workspace stays the same."""
    state = await core.sessions.get(app, body.session_id)
    refuse_move(core, state.row.cwd, body.workspace)
    wanted = shapes.chosen_model(body.model)
    if wanted:
        noted = {shapes.PROVIDER: body.model_provider or None}
        await core.sessions.set_model(app, body.session_id, wanted, noted)
    return await _whole(core, app, body.session_id, page)


async def pin(core: Core, app: App, page: Page, body: Pin) -> Response:
    """Pin a session, or unpin it. On hermes' own page three are pinned at most, as it says itself."""
    if page and body.pinned:
        await _need_free_pin(core, app, body.session_id)
    await core.sessions.patch(app, body.session_id, PatchSession(pinned=body.pinned))
    return await _compact(core, app, body.session_id, page)


async def archive(core: Core, app: App, page: Page, body: Archive) -> Response:
    """Archive a session, or bring it back. The list goes by this label."""
    await core.sessions.label(app, body.session_id, shapes.ARCHIVED, on=body.archived)
    return await _compact(core, app, body.session_id, page)


async def delete(core: Core, app: App, body: SessionRef) -> Response:
    """Delete a session permanently. Deleting one that does not exist succeeds as well."""
    if not set(body.session_id).isdisjoint(NO_ID):
        raise InvalidRequest("Invalid session_id: it looks like a path")
    try:
        await core.sessions.delete(app, body.session_id)
    except SessionNotFound:
        return json_response({"ok": True})
    return json_response({"ok": True})


async def search(core: Core, app: App, page: Page, q: Words = "") -> Response:
    """Sessions with these words in title or messages, last activity first; without words, all of them."""
    titled = await core.messages.overview(app, SessionQuery(limit=FOUND, q=q or None), with_cut_off=page)
    rows = [{**shapes.compact(found, page), "match_type": "title"} for found in titled]
    hits, _ = await core.history.search(app, q, FOUND, None, None) if q else ([], None)
    previews: dict[str, str] = {}
    for hit in hits:
        previews.setdefault(hit.session_id, hit.snippet)
    for session_id in previews.keys() - {row["session_id"] for row in rows}:
        found = await core.messages.transcript(app, session_id, 0, with_cut_off=page)
        matched = {"match_type": "content", "match_preview": previews[session_id]}
        rows.append({**shapes.compact(found, page), **matched})
    rows.sort(key=lambda row: row["updated_at"], reverse=True)
    return json_response({"ok": True, "sessions": rows, "query": q, "count": len(rows)})


async def list_sessions(core: Core, app: App, page: Page, include_archived: bool = True) -> Response:
    """The app's sessions, last activity first."""
    found = await core.messages.overview(app, SessionQuery(limit=MAX_LISTED), with_cut_off=page)
    rows = [shapes.compact(one, page) for one in found]
    shown = [row for row in rows if include_archived or not row["archived"]]
    clock = {"server_time": to_float(core.health.now), "server_tz": UTC}
    return json_response({"ok": True, "sessions": shown, "count": len(shown), "cli_count": 0, **clock})


def find_named(core: Services, workspace: str | None) -> str | None:
    """The folder that a caller chose. A page hands back what it was shown of the session before: none."""
    return None if not workspace or core.sessions.is_own_folder(workspace) else workspace


def refuse_move(core: Services, cwd: str, workspace: str | None) -> None:
    wanted = find_named(core, workspace)
    if wanted and wanted.rstrip("/") != cwd.rstrip("/"):
        raise Unsupported("a session stays in its workspace; make a new session for another one")


async def _need_free_pin(core: Services, app: str, session_id: str) -> None:
    """What is archived takes none. Two pins at the same moment may both find the last: it is a courtesy."""
    found, _ = await core.sessions.list(app, SessionQuery(limit=MAX_LISTED, pinned=True))
    taken = [one for one in found if shapes.ARCHIVED not in one.row.labels]
    if len([one for one in taken if one.row.session_id != session_id]) >= MOST_PINNED:
        raise InvalidRequest(f"Up to {MOST_PINNED} sessions can be pinned; unpin one before you pin another")


async def _compact(core: Services, app: str, session_id: str, page: bool) -> Response:
    found = await core.messages.transcript(app, session_id, 0, with_cut_off=page)
    return json_response({"ok": True, "session": shapes.compact(found, page)})


async def _whole(core: Services, app: str, session_id: str, page: bool) -> Response:
    found = await core.messages.transcript(app, session_id, with_cut_off=page)
    return await whole_reply(core, app, found, page)


def _encode_file(found: Transcript) -> bytes:
    return orjson.dumps(shapes.exported(found), option=orjson.OPT_INDENT_2)
