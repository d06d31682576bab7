"""hermes routes that take history back: retry, undo, truncate, clear; and those that branch it."""

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from clawdforge.core.models.rows import MessageRow
from clawdforge.core.rules.transcripts import Transcript
from clawdforge.http.dialects.hermes import shapes
from clawdforge.http.dialects.hermes.route import Page, router, whole_reply
from clawdforge.http.errors import json_response
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, Core
from clawdforge.wire.errors import InvalidRequest, Unsupported
from clawdforge.wire.hermes import (
    Branch,
    BranchReply,
    HermesSessionReply,
    RetryReply,
    SessionRef,
    Truncate,
    UndoReply,
)
from clawdforge.wire.message import Role
from clawdforge.wire.session import ForkRequest, Guarded, PatchSession, RetryRequest, UndoRequest

MOST_TITLE: Final = 400
MOST_TURNS: Final = 10_000


def routes(prefix: str) -> Router:
    found = router(prefix)
    found.post("/api/session/retry", response_model=RetryReply)(retry)
    found.post("/api/session/undo", response_model=UndoReply)(undo)
    found.post("/api/session/truncate", response_model=HermesSessionReply)(truncate)
    found.post("/api/session/clear", response_model=HermesSessionReply)(clear)
    found.post("/api/session/branch", response_model=BranchReply)(branch)
    found.post("/api/session/duplicate", response_model=HermesSessionReply)(duplicate)
    return found


async def retry(core: Core, app: App, body: SessionRef) -> Response:
    """Take back the user's last message and everything after it, and return its text to be sent again."""
    cut = await core.history.retry(app, body.session_id, RetryRequest())
    removed = len(cut.moved.messages)
    return json_response({"ok": True, "last_user_text": cut.last_user_text, "removed_count": removed})


async def undo(core: Core, app: App, body: SessionRef) -> Response:
    """Take back the user's last message and everything after it."""
    cut = await core.history.undo(app, body.session_id, UndoRequest())
    preview, removed = shapes.preview(cut.last_user_text), len(cut.moved.messages)
    return json_response({"ok": True, "removed_count": removed, "removed_preview": preview})


async def truncate(core: Core, app: App, page: Page, body: Truncate) -> Response:
    """Take back everything but the first messages; of a prompt and its answer, never the answer alone."""
    before = await core.messages.transcript(app, body.session_id, with_cut_off=page)
    keep = before.count_messages(body.keep_count)
    gone = before.messages[_find_first_removed(before.messages, keep) :]
    count = sum(row.role == Role.USER for row in gone)
    if count > MOST_TURNS:
        raise Unsupported(f"not more than {MOST_TURNS} turns can be taken back at once")
    if gone:
        request = UndoRequest(turns=count, expected_head=before.state.row.head)
        await core.history.undo(app, body.session_id, request)
    found = await core.messages.transcript(app, body.session_id, with_cut_off=page)
    return await whole_reply(core, app, found, page)


async def clear(core: Core, app: App, page: Page, body: SessionRef) -> Response:
    """Archive everything that was said and start over, without a title."""
    await core.history.clear(app, body.session_id, Guarded())
    await core.sessions.patch(app, body.session_id, PatchSession(title=""))
    found = await core.messages.transcript(app, body.session_id, 0)
    return json_response({"ok": True, "session": shapes.compact(found, page)})


async def branch(core: Core, app: App, page: Page, body: Branch) -> Response:
    """Make another session with the same past, complete or up to a message. Both can go on."""
    shown = None if body.keep_count is not None else 0
    before = await core.messages.transcript(app, body.session_id, shown, with_cut_off=page)
    title = shapes.clean_title(body.title or "") or f"{shapes.title(before.state.row)[:MOST_TITLE]} (fork)"
    request = ForkRequest(title=title, after_turn=_find_last_kept_turn(before, body.keep_count))
    made = (await core.forks.fork(app, body.session_id, request)).row
    reply = {"session_id": made.session_id, "title": made.title, "parent_session_id": body.session_id}
    return json_response({"ok": True, **reply})


async def duplicate(core: Core, app: App, page: Page, body: SessionRef) -> Response:
    """Make a copy of a session with all of its past."""
    before = await core.messages.transcript(app, body.session_id, 0)
    request = ForkRequest(title=f"{shapes.title(before.state.row)[:MOST_TITLE]} (copy)")
    made = await core.forks.fork(app, body.session_id, request)
    return await whole_reply(core, app, await core.messages.transcript(app, made.row.session_id), page)


def _find_first_removed(rows: Sequence[MessageRow], keep_count: int) -> int:
    """Where to cut: before the prompt of the first message that has to go.

    A page that wants another answer removes the old one and sends its prompt again.
    """
    if keep_count >= len(rows):
        return len(rows)
    prompts = (at for at in range(keep_count, -1, -1) if rows[at].role == Role.USER)
    first = next(prompts, None)
    if first is None:
        raise InvalidRequest("what comes before the first prompt stays; choose another keep_count")
    return first


def _find_last_kept_turn(found: Transcript, keep_count: int | None) -> int | None:
    """The turn that ends with the last message that is kept; None is the present."""
    rows: Sequence[MessageRow] = found.messages
    if keep_count is None or keep_count >= len(found.entries):
        return None
    keep_count = found.count_messages(keep_count)
    if keep_count == 0:
        return 0
    kept, following = rows[keep_count - 1], rows[keep_count]
    if not kept.turn or kept.turn == following.turn:
        raise Unsupported("a branch can only start after a complete turn; choose another keep_count")
    return kept.turn
