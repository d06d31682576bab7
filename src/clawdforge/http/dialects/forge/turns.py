"""Forge routes about turns: submit and wait, stream or queue, cancel, and the agent's permission requests."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Annotated, Final, Literal

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.services.turns import raise_for
from clawdforge.http.access.share import wants_stream
from clawdforge.http.connections.connection import unless_gone
from clawdforge.http.connections.waiting import closing
from clawdforge.http.dialects.forge import shapes
from clawdforge.http.errors import JSON, JsonResponse, json_response
from clawdforge.http.replies.piecewise import SLICE_BYTES, WHOLE_BYTES, Pause, shape
from clawdforge.http.replies.sse import EventStream, find_start, turn_frames
from clawdforge.http.requests.marks import Header, Path, Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import (
    MAX_CURSOR,
    After,
    App,
    AppRoute,
    Caller,
    Core,
    Limit,
    UntilSent,
    has_own_limit,
)
from clawdforge.wire.base import Json
from clawdforge.wire.event_forms import Form
from clawdforge.wire.json_bounds import LARGE_BYTES
from clawdforge.wire.turn import (
    AppPermissionPage,
    CancelReply,
    CancelRequest,
    ChangeTurn,
    DecideRequest,
    PermissionPage,
    PermissionReply,
    PermissionState,
    TurnAccepted,
    TurnChanged,
    TurnPage,
    TurnReply,
    TurnRequest,
)

Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=255, pattern=r"^[\x21-\x7e]+$")]
Index = Annotated[int, Path(le=MAX_CURSOR)]
FEW_EVENTS: Final = 32
"""An answer of no more, if they are short, is made at once; others a page at a time."""
ENDING = b"]}"  # of the list of events, and of the answer
STREAM: Json = {"content": {"text/event-stream": {}}}


def routes() -> Router:
    router = Router(AppRoute, tags=["turns"])
    at = "/sessions/{session_id}"
    router.post(f"{at}/turn", response_model=TurnReply, responses={200: STREAM})(run_turn)
    router.post(f"{at}/turns", response_model=TurnAccepted, status_code=202)(queue_turn)
    router.get(f"{at}/turns", response_model=TurnPage)(list_turns)
    router.patch(f"{at}/turns/{{turn_index}}", response_model=TurnChanged)(change_turn)
    router.delete(f"{at}/turns/{{turn_index}}", response_model=CancelReply)(withdraw)
    router.post(f"{at}/cancel", response_model=CancelReply)(cancel)
    router.get(f"{at}/permissions", response_model=PermissionPage)(list_permissions)
    router.get("/permissions", response_model=AppPermissionPage)(list_pending)
    router.post(f"{at}/permissions/{{permission_id}}", response_model=PermissionReply)(decide)
    return router


@has_own_limit
async def run_turn(
    request: Request,
    core: Core,
    caller: Caller,
    until_sent: UntilSent,
    session_id: str,
    *,
    body: TurnRequest,
    form: Form = Form.NESTED,
    key: Key = None,
) -> Response:
    """Submit a prompt and answer with the whole turn, or stream its events with `Accept: text/event-stream`.

    Hanging up does not cancel the turn. `form` is that of the agent's events.
    """
    app = caller.app
    tail = until_sent.enter_context(core.log.tail(session_id))
    ended = tail.turn_ended  # the first that may be the turn's own
    submitted = await core.turns.submit(app, session_id, body, key, caller)
    turn_index = submitted.turn.turn_index
    until_sent.enter_context(core.turns.expect_answer(session_id, turn_index))
    if wants_stream(request):
        batches = core.log.follow_stretches(app, session_id, find_start(submitted), form)
        return EventStream(request, turn_frames(batches, turn_index, form))
    waiting = core.turns.wait(app, session_id, turn_index, None if submitted.replayed else ended)
    turn = await unless_gone(request, waiting)
    if turn is None:
        return Response()  # nobody is there to read it
    raise_for(turn)
    opening, recent = shapes.turn_opening(turn), tail.find_turn(turn)
    if recent is not None and len(recent) <= FEW_EVENTS and _count_bytes(recent) <= LARGE_BYTES:
        return JsonResponse(b"".join((opening, shapes.join_events(recent, form), ENDING)))
    pages = _encode_pages(core.log.turn_pages(app, session_id, turn_index, form, recent), form)
    return await _make_reply(opening, pages, partial(core.loop_turns.slice, app))


async def queue_turn(
    core: Core, caller: Caller, session_id: str, body: TurnRequest, key: Key = None
) -> Response:
    """Submit a prompt; it is on stable storage when this answers."""
    submitted = await core.turns.submit(caller.app, session_id, body, key, caller)
    turn = submitted.turn
    accepted = TurnAccepted(
        session_id=session_id,
        turn_index=turn.turn_index,
        state=turn.state,
        if_busy=turn.if_busy,
        head=submitted.head,
        replayed=submitted.replayed,
    )
    return json_response(accepted, 202)


async def list_turns(core: Core, app: App, session_id: str, after: After = 0, limit: Limit = 100) -> Response:
    """The session's turns, oldest first, the queue included."""
    rows, is_more, places = await core.turns.list(app, session_id, after, limit)
    pause = partial(core.loop_turns.slice, app)
    page = await shape(pause, rows, lambda row: shapes.turn(row, position=places.get(row.turn_index)))
    following = page[-1].turn_index if is_more else None
    return json_response(TurnPage(session_id=session_id, turns=page, count=len(page), next=following))


async def change_turn(
    core: Core, caller: Caller, session_id: str, turn_index: Index, body: ChangeTurn
) -> Response:
    """Change the prompt, the files or the place of a turn that waits in the queue; 409 once it has begun."""
    row, position = await core.turns.change(caller, session_id, turn_index, body)
    changed = shapes.turn(row, TurnChanged, session_id=session_id, position=position)
    return json_response(changed)


async def withdraw(core: Core, app: App, session_id: str, turn_index: Index) -> Response:
    """Take a turn out of the queue."""
    await core.turns.withdraw(app, session_id, turn_index)
    return json_response(CancelReply(session_id=session_id, cancelled=1))


async def cancel(core: Core, app: App, session_id: str, body: CancelRequest) -> Response:
    """End the running turn, or the one that is named, and keep the answer so far."""
    if body.turn is not None:
        count = int(await core.turns.stop(app, session_id, body.turn))
    else:
        count = await core.turns.cancel(app, session_id, queued=body.queued)
    return json_response(CancelReply(session_id=session_id, cancelled=count))


async def list_permissions(
    core: Core, app: App, session_id: str, state: PermissionState | None = None
) -> Response:
    """What the agent asked for, and what was decided."""
    rows = [shapes.permission(row) for row in await core.permissions.list(app, session_id, state)]
    return json_response(PermissionPage(session_id=session_id, permissions=rows, count=len(rows)))


async def list_pending(
    core: Core,
    app: App,
    *,
    state: Literal["pending"] = "pending",  # noqa: ARG001 - said by callers; there is no other list yet
    limit: Limit = 100,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> Response:
    """What agents ask for in all of the app's sessions and nobody has decided, oldest first."""
    found, following = await core.permissions.pending(app, limit, cursor)
    rows = [shapes.app_permission(one, core.permissions.expires_at(one.row)) for one in found]
    return json_response(AppPermissionPage(permissions=rows, count=len(rows), next=following))


async def decide(core: Core, app: App, session_id: str, permission_id: str, body: DecideRequest) -> Response:
    """Decide a permission request; the first answer wins."""
    row = await core.permissions.decide(app, session_id, permission_id, body)
    return json_response(PermissionReply(permission=shapes.permission(row)))


def _count_bytes(events: list[StoredEvent]) -> int:
    return sum([len(event.data) for event in events])


async def _encode_pages(batches: AsyncIterator[list[StoredEvent]], form: Form) -> AsyncIterator[bytes]:
    lead = b""
    async with closing(batches):
        async for batch in batches:
            for piece in _encode_batch(batch, form, lead):
                yield piece
            lead = b","


def _encode_batch(batch: list[StoredEvent], form: Form, lead: bytes) -> Iterator[bytes]:
    """A large event is sent in slices of the bytes that all its readers share."""
    small: list[StoredEvent] = []
    for event in batch:
        if len(event.data) <= LARGE_BYTES:
            small.append(event)
            continue
        yield lead + shapes.join_events(small, form) + (b"," if small else b"")
        yield from event.slices(form, SLICE_BYTES)
        small, lead = [], b","
    if small:
        yield lead + shapes.join_events(small, form)


async def _make_reply(opening: bytes, pieces: AsyncIterator[bytes], pause: Pause) -> Response:
    """A short turn is sent at once; a long one as it is read, so that it is never in memory as a whole."""
    first = [opening]
    async for piece in pieces:
        first.append(piece)
        if sum(map(len, first)) > WHOLE_BYTES:
            return StreamingResponse(_go_on(first, pieces, pause), media_type=JSON)
    return JsonResponse(b"".join([*first, ENDING]))


async def _go_on(first: list[bytes], rest: AsyncIterator[bytes], pause: Pause) -> AsyncIterator[bytes]:
    async with closing(rest):
        for piece in first:
            yield piece
        async for piece in rest:
            await pause()
            yield piece
    yield ENDING
