"""Forge routes about a session's past: undo, redo, retry, fork, clear, compact, export, import, search."""

from functools import partial
from typing import Annotated, Any, Final, Literal

from starlette.responses import Response

from clawdforge.core.models.rows import Hit
from clawdforge.core.services.history import Archived, Cut
from clawdforge.http.dialects.forge import export as exports
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import json_response
from clawdforge.http.replies.piecewise import piecewise, shape
from clawdforge.http.replies.transcript_page import page as write_page
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import (
    After,
    App,
    AppRoute,
    Caller,
    Core,
    Limit,
    has_own_limit,
    takes_many_values,
)
from clawdforge.wire.base import to_iso
from clawdforge.wire.message import SearchHit, SearchPage
from clawdforge.wire.session import (
    CompactRequest,
    CutReply,
    Export,
    ForkRequest,
    Guarded,
    HistoryReply,
    ImportRequest,
    RedoRequest,
    RestoreReply,
    RetryRequest,
    SessionReply,
    UndoRequest,
)
from clawdforge.wire.tree import TreeReply

Question = Annotated[str, Query(min_length=1, max_length=1000)]
Words = Annotated[str | None, Query(max_length=500)]


FILES: Final[dict[str, Any]] = {"content": {"text/markdown": {}, "text/html": {}}}


def routes() -> Router:
    router = Router(AppRoute, tags=["history"])
    router.post("/sessions/import", response_model=SessionReply)(import_session)
    router.post("/sessions/{session_id}/undo", response_model=CutReply)(undo)
    router.post("/sessions/{session_id}/redo", response_model=RestoreReply)(redo)
    router.post("/sessions/{session_id}/retry", response_model=CutReply)(retry)
    router.post("/sessions/{session_id}/fork", response_model=SessionReply)(fork)
    router.post("/sessions/{session_id}/clear", response_model=HistoryReply)(clear)
    router.post("/sessions/{session_id}/compact", response_model=HistoryReply)(compact)
    router.get("/sessions/{session_id}/export", response_model=Export, responses={200: FILES})(export)
    router.get("/sessions/{session_id}/tree", response_model=TreeReply)(tree)
    router.get("/search", response_model=SearchPage)(search)
    return router


async def undo(core: Core, app: App, session_id: str, body: UndoRequest) -> Response:
    """Take back the last turns, in the transcript and in the agent's memory; with `files` the files too."""
    return json_response(_cut(session_id, await core.history.undo(app, session_id, body)))


async def retry(core: Core, caller: Caller, session_id: str, body: RetryRequest) -> Response:
    """Take back the last turn and return its prompt; `run` sends it again, `prompt` sends another one."""
    return json_response(_cut(session_id, await core.history.retry(caller.app, session_id, body, caller)))


async def redo(core: Core, app: App, session_id: str, body: RedoRequest) -> Response:
    """Bring back what the last undo or retry took, as long as nothing was added since."""
    moved = await core.history.redo(app, session_id, body)
    return json_response(
        RestoreReply(
            session_id=session_id,
            restored_count=len(moved.messages),
            restored_turns=list(moved.turns),
            head=moved.session.head,
            context=moved.session.context,
        )
    )


async def fork(core: Core, app: App, session_id: str, body: ForkRequest) -> Response:
    """Make a new session with the same history, agent memory and workspace. Both can go on independently."""
    state = await core.forks.fork(app, session_id, body)
    return json_response(shapes.session(state, SessionReply, core.ages))


async def clear(core: Core, app: App, session_id: str, body: Guarded) -> Response:
    """Archive the transcript and start a new context."""
    return json_response(_archived(session_id, await core.history.clear(app, session_id, body)))


@has_own_limit
async def compact(core: Core, caller: Caller, session_id: str, body: CompactRequest) -> Response:
    """Ask the agent for a summary and start a new context with it; earlier messages are archived."""
    archived = await core.compaction.compact(caller.app, session_id, body, caller)
    return json_response(_archived(session_id, archived))


async def export(
    core: Core,
    app: App,
    session_id: str,
    *,
    format: Literal["json", "md", "html"] = "json",  # noqa: A002 - the parameter's name on the wire
    events: bool = False,
) -> Response:
    """The session on its own, as JSON that import reads, Markdown, or an HTML file; `events` adds the log."""
    found = await core.transfer.export(app, session_id, events=events and format == "json")
    pause = partial(core.loop_turns.slice, app)
    if format == "md":
        return await piecewise(exports.markdown(found), "text/markdown; charset=utf-8", pause)
    if format == "html":
        pages = write_page(found.session, found.messages)
        reply = await piecewise(pages, "text/html; charset=utf-8", pause)
        reply.headers["Content-Disposition"] = (
            f'attachment; filename="session-{found.session.session_id}.html"'
        )
        return reply
    return await piecewise(exports.document(found), "application/json", pause)


async def tree(core: Core, app: App, session_id: str, after: After = 0, limit: Limit = 200) -> Response:
    """The session's turns with the turn that each was said after, those taken back, and its forks."""
    return json_response(shapes.tree(await core.history.tree(app, session_id, after, limit)))


@takes_many_values
async def import_session(core: Core, caller: Caller, body: ImportRequest) -> Response:
    """A session from a transcript: messages, an export of ours, or a file of Claude Code or Codex."""
    state = await core.transfer.import_session(caller.app, body, may_decide=caller.may_decide)
    return json_response(shapes.session(state, SessionReply, core.ages))


async def search(
    core: Core,
    app: App,
    q: Question,
    *,
    limit: Limit = 50,
    cursor: Words = None,
    session_id: Words = None,
) -> Response:
    """Full text over the app's visible messages, newest first; found words stand between « and »."""
    hits, following = await core.history.search(app, q, limit, cursor, session_id)
    rows = await shape(partial(core.loop_turns.slice, app), hits, _hit)
    return json_response(SearchPage(hits=rows, count=len(rows), next=following))


def _hit(hit: Hit) -> SearchHit:
    return SearchHit(
        session_id=hit.session_id,
        title=hit.title,
        seq=hit.seq,
        turn=hit.turn,
        role=hit.role,
        ts=to_iso(hit.ts),
        snippet=hit.snippet,
    )


def _cut(session_id: str, cut: Cut) -> CutReply:
    return CutReply(
        session_id=session_id,
        removed_count=len(cut.moved.messages),
        removed_turns=list(cut.moved.turns),
        removed_preview=cut.preview,
        last_user_text=cut.last_user_text,
        head=cut.moved.session.head,
        context=cut.moved.session.context,
        turn_index=cut.queued_turn.turn_index if cut.queued_turn else None,
    )


def _archived(session_id: str, archived: Archived) -> HistoryReply:
    return HistoryReply(
        session_id=session_id,
        archived_count=archived.count,
        head=archived.session.head,
        context=archived.session.context,
        summary=archived.summary,
    )
