"""hermes routes about one prompt: start it, stream it, ask after it, cancel it."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.services.all import Services
from clawdforge.http.connections.waiting import closing
from clawdforge.http.dialects.hermes import frames, shapes
from clawdforge.http.dialects.hermes.route import Page, StreamId, router
from clawdforge.http.dialects.hermes.sessions import refuse_move
from clawdforge.http.dialects.hermes.uploads import find_files
from clawdforge.http.errors import NO_MORE, json_response
from clawdforge.http.replies.sse import EventStream
from clawdforge.http.requests.marks import Header, Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, Caller, Core
from clawdforge.wire.base import Json, to_float
from clawdforge.wire.errors import (
    HeadMoved,
    InvalidRequest,
    MissingParameter,
    NoPreviousMessage,
    SessionBusy,
    SessionNotFound,
    TurnNotFound,
)
from clawdforge.wire.event import EventType
from clawdforge.wire.hermes import CancelledReply, ChatStart, ChatStarted, Steer, SteerReply, StreamStatus
from clawdforge.wire.session import RetryRequest
from clawdforge.wire.turn import IfBusy, TurnRequest, TurnState

DONE_MESSAGES: Final = 500
STREAM: Final[Json] = {"content": {"text/event-stream": {}}}
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=255, pattern=r"^[\x21-\x7e]+$")]
CursorText = Annotated[str | None, Query(max_length=8192)]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=8192)]


def routes(prefix: str) -> Router:
    found = router(prefix)
    found.post("/api/chat/start", response_model=ChatStarted)(start)
    found.get("/api/chat/stream", response_class=Response, responses={200: STREAM})(stream)
    found.get("/api/chat/stream/status", response_model=StreamStatus)(stream_status)
    found.get("/api/chat/cancel", response_model=CancelledReply)(cancel)
    found.post("/api/chat/steer", response_model=SteerReply)(steer)
    return found


async def start(core: Core, caller: Caller, body: ChatStart, key: Key = None) -> Response:
    """Submit a prompt; it is on stable storage when this answers. A busy session refuses it with 409."""
    app = caller.app
    row = (await core.sessions.get(app, body.session_id)).row
    refuse_move(core, row.cwd, body.workspace)
    if body.regenerate:
        return await _regenerate(core, caller, row, body)
    if body.message is None:
        raise MissingParameter("message is missing")
    files = await find_files(core, app, body.attachments)
    request = TurnRequest(prompt=body.message, files=files or None, if_busy=IfBusy.REJECT)
    try:
        wanted = shapes.chosen_model(body.model)
        if wanted and wanted != row.model:
            noted = {shapes.PROVIDER: body.model_provider or None}
            row = (await core.sessions.set_model(app, body.session_id, wanted, noted)).row
        submitted = await core.turns.submit(app, body.session_id, request, key, caller)
    except SessionBusy as busy:
        raise await _name_active_stream(core, app, row, busy) from busy
    return _started(row, submitted.turn)


async def stream(
    request: Request,
    core: Core,
    app: App,
    page: Page,
    stream_id: StreamId,
    *,
    after_event_id: CursorText = None,
    after_seq: CursorText = None,
    last_event_id: LastEventId = None,
) -> Response:
    """What happens in a turn as server-sent events, from its start or after a frame that was seen.

    A reader that has seen the end is told so by an empty answer, so that it does not come again.
    """
    head, turn = await _find_turn(core, app, stream_id)
    since = frames.choose_later(
        frames.parse_cursor(after_event_id or after_seq, stream_id),
        frames.parse_cursor(last_event_id, stream_id),
    )
    begin = turn.first_seq or turn.last_seq
    after = head if begin is None else begin - 1
    if since is not None and since.seq <= max(head, turn.last_seq or 0):
        after = max(after, since.after)
    if turn.last_seq is not None and after >= turn.last_seq:
        return Response(status_code=NO_MORE)
    return EventStream(request, _frames(core, app, turn, after, since, page))


async def stream_status(core: Core, app: App, stream_id: StreamId) -> Response:
    """Whether a turn is still running, and where its stream ends. An unknown stream is not active."""
    try:
        head, turn = await _find_turn(core, app, stream_id)
    except TurnNotFound:
        return json_response({"ok": True, "active": False, "stream_id": stream_id, "replay_available": False})
    over = turn.state is TurnState.ENDED
    last = turn.last_seq or head
    journal = {
        "session_id": turn.session_id,
        "run_id": stream_id,
        "last_seq": last,
        "last_event_id": f"{stream_id}:{last}",
        "terminal": over,
        "terminal_state": turn.outcome,
    }
    return json_response(
        {
            "ok": True,
            "active": not over,
            "stream_id": stream_id,
            "replay_available": True,
            "journal": journal,
        }
    )


async def cancel(core: Core, app: App, stream_id: StreamId) -> Response:
    """End a turn and keep the answer so far. A turn that is over, or unknown, is not cancelled."""
    try:
        _, turn = await _find_turn(core, app, stream_id)
        cancelled = await core.turns.stop(app, turn.session_id, turn.turn_index)
    except TurnNotFound:
        cancelled = False
    return json_response({"ok": True, "cancelled": cancelled, "stream_id": stream_id})


async def steer(core: Core, app: App, body: Steer) -> Response:
    """Never accepted, since no agent takes a prompt while it answers. The caller sends it after the turn."""
    await core.sessions.get(app, body.session_id)
    return json_response(SteerReply())


async def _find_turn(core: Services, app: str, stream_id: str) -> tuple[int, TurnRow]:
    """The session's head and the turn, read in this order: a turn that is still queued has said nothing."""
    named = shapes.split_stream_id(stream_id)
    if named is None:
        raise TurnNotFound("stream not found")
    try:
        head = (await core.sessions.get(app, named[0])).row.head
        turn = await core.turns.get(app, *named)
    except (SessionNotFound, TurnNotFound) as error:
        raise TurnNotFound("stream not found") from error
    if turn.state is TurnState.ENDED and turn.last_seq is None:
        raise TurnNotFound("stream not found")  # it ran in the session that this one was branched from
    return head, turn


async def _frames(
    core: Services, app: str, turn: TurnRow, after: int, since: frames.Cursor | None, page: bool
) -> AsyncIterator[bytes]:
    session_id, stream_id = turn.session_id, f"{turn.session_id}:{turn.turn_index}"
    names = await _tool_names(core, app, turn, after)
    batches = core.log.follow(app, session_id, after)
    async with closing(batches):
        async for batch in batches:
            piece: list[bytes] = []
            ended = False
            for stored in (one for one in batch if one.turn == turn.turn_index):
                event = stored.decode()
                ended = stored.type == EventType.TURN_ENDED
                if ended:
                    whole = await core.messages.transcript(app, session_id, DONE_MESSAGES, with_cut_off=page)
                    parts = frames.parts_of_end(event, shapes.session(whole, page))
                else:
                    if stored.type == EventType.TOOL_CALL:
                        names[frames.tool_id(event)] = event["name"]
                    parts = frames.parts_of(event, session_id, names)
                piece.append(frames.encode_parts(stream_id, stored.seq, parts, since))
            if any(piece):
                yield b"".join(piece)
            if ended:
                return


async def _tool_names(core: Services, app: str, turn: TurnRow, through: int) -> dict[str, str]:
    """The names of the tool calls that a reader has seen before it was disconnected."""
    names: dict[str, str] = {}
    if turn.first_seq is None or through < turn.first_seq:
        return names
    pages = core.log.turn_pages(app, turn.session_id, turn.turn_index)
    async with closing(pages):
        async for page in pages:
            for stored in page:
                if stored.seq > through:
                    return names
                if stored.type == EventType.TOOL_CALL:
                    event = stored.decode()
                    names[frames.tool_id(event)] = event["name"]
    return names


async def _regenerate(core: Services, caller: Principal, row: SessionRow, body: ChatStart) -> Response:
    """Run the last prompt again instead of its answer, if that is still the answer that the caller saw."""
    if body.message is not None or body.attachments:
        raise InvalidRequest("regenerate runs the last prompt again; leave message and attachments out")
    wanted = body.regeneration_revision
    if wanted is None or wanted != shapes.revision(row):
        raise HeadMoved("the conversation has gone on since; load it again", head=row.head)
    request = RetryRequest(run=True, expected_head=row.head)
    try:
        cut = await core.history.retry(caller.app, row.session_id, request, caller)
    except SessionBusy as busy:
        raise await _name_active_stream(core, caller.app, row, busy) from busy
    if cut.queued_turn is None:
        raise NoPreviousMessage
    return _started(row, cut.queued_turn)


def _started(row: SessionRow, turn: TurnRow) -> Response:
    """wire.hermes.ChatStarted"""
    return json_response(
        {
            "ok": True,
            "stream_id": shapes.stream_id(row.session_id, turn.turn_index),
            "session_id": row.session_id,
            "turn_index": turn.turn_index,
            "title": shapes.title(row),
            "effective_model": shapes.model(row),
            "pending_started_at": to_float(turn.queued_at),
        }
    )


async def _name_active_stream(core: Services, app: str, row: SessionRow, busy: SessionBusy) -> SessionBusy:
    state = await core.sessions.get(app, row.session_id)
    active = busy.extra.get("active_turn") or state.running_turn or state.row.last_turn
    return SessionBusy(
        "session already has an active stream", active_stream_id=shapes.stream_id(row.session_id, active)
    )
