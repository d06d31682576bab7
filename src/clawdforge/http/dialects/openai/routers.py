"""The routes of the OpenAI dialect: models, chat completions and responses."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Final, Protocol, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.principal import Principal
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.all import Services
from clawdforge.core.services.turns import raise_for
from clawdforge.http.access.share import enter_as_reader
from clawdforge.http.connections.connection import unless_gone
from clawdforge.http.connections.waiting import closing
from clawdforge.http.dialects.openai.asked import PERSONA, Asked, read_chat, read_response
from clawdforge.http.dialects.openai.chat_locks import ChatLocks
from clawdforge.http.dialects.openai.completions import Completion
from clawdforge.http.dialects.openai.finding import Submission
from clawdforge.http.dialects.openai.naming import SESSION_HEADER, Named, find_names
from clawdforge.http.dialects.openai.progress import End, Piece, end_of, join, piece_of
from clawdforge.http.dialects.openai.responses import ResponseParts
from clawdforge.http.errors import encode, json_response
from clawdforge.http.replies.piecewise import piecewise, slices
from clawdforge.http.replies.sse import EventStream, find_start
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Caller, Core, UntilSent, has_own_limit, takes_many_values
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.base import Json, to_seconds
from clawdforge.wire.event import EventType
from clawdforge.wire.json_bounds import LARGE_BYTES
from clawdforge.wire.openai import ChatCompletion, ChatRequest, ModelPage, ResponseObject, ResponseRequest

STREAM: Final[Json] = {"content": {"text/event-stream": {}}}
JSON: Final = "application/json"


Beside: TypeAlias = Callable[[Callable[[], list[bytes]]], Awaitable[list[bytes]]]
"""Does something beside the event loop."""


class OpenAIRoute(AppRoute):
    """A route whose callers expect 400 for a body that is wrong, and an error as an object."""

    dialect = "openai"
    refuses_unknown = False


class Shape(Protocol):
    """An answer as one of the two surfaces knows it: as frames, or kept for the whole."""

    def begin(self) -> Iterator[bytes]: ...
    def feed(self, pieces: Iterable[Piece]) -> Iterator[bytes]: ...
    def end(self, end: End) -> Iterator[bytes]: ...
    def count_repeated(self, pieces: Iterable[Piece], *, ends: bool) -> int:
        """How many characters the frames of these pieces, and of the end, tell that were told before."""
        ...

    def keep(self, pieces: Iterable[Piece]) -> None: ...
    def whole(self, end: End) -> Json: ...


def routers() -> list[Router]:
    router = Router(OpenAIRoute, tags=["openai dialect"])
    router.get("/v1/models", response_model=ModelPage)(list_models)
    router.post("/v1/chat/completions", response_model=ChatCompletion, responses={200: STREAM})(complete)
    router.post("/v1/responses", response_model=ResponseObject, responses={200: STREAM})(respond)
    return [router]


async def list_models(core: Core, app: App) -> Response:
    """The installed agents by their names, and the app's personas as `persona/NAME`."""
    found = [
        {"id": agent.name, "object": "model", "created": 0, "owned_by": "agents"}
        for agent in core.agents.page().agents
        if agent.installed
    ]
    for row in await core.personas.list(app):
        created = to_seconds(row.created_at) or 0
        name = f"{PERSONA}/{row.name}"
        found.append({"id": name, "object": "model", "created": created, "owned_by": "personas"})
    return json_response({"object": "list", "data": found})


@has_own_limit
@takes_many_values
async def complete(
    request: Request, core: Core, caller: Caller, until_sent: UntilSent, body: ChatRequest
) -> Response:
    """Submit the last message, and answer with the turn as a chat completion, whole or as a stream.

    Hanging up does not cancel the turn.
    """
    settings: HttpSettings = request.app.state.settings
    named = find_names(request.headers, settings.openai_chat_header)
    if body.stream:
        enter_as_reader(request)
    submitted = await _submit(request, core, caller, read_chat(body), named)
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    shape = Completion(submitted.turn, body.model, with_usage=with_usage)
    return await _answer(request, core, caller.app, until_sent, submitted, shape, streams=bool(body.stream))


@has_own_limit
@takes_many_values
async def respond(
    request: Request, core: Core, caller: Caller, until_sent: UntilSent, body: ResponseRequest
) -> Response:
    """Submit the last message of the input, and answer with the turn as a response, whole or as a stream.

    Hanging up does not cancel the turn.
    """
    settings: HttpSettings = request.app.state.settings
    named = find_names(request.headers, settings.openai_chat_header, body)
    keep = body.store is not False
    if body.stream:
        enter_as_reader(request)
    submitted = await _submit(request, core, caller, read_response(body), named, keep=keep)
    shape = ResponseParts(submitted.turn, body)
    return await _answer(request, core, caller.app, until_sent, submitted, shape, streams=bool(body.stream))


async def _submit(
    request: Request, core: Services, caller: Principal, asked: Asked, named: Named, *, keep: bool = False
) -> SubmittedTurn:
    locks: ChatLocks = request.app.state.chat_locks
    submission = Submission(core, request.app.state.settings, caller, asked, named, keep)
    async with locks.hold(caller.app, named.chat):
        return await submission.submit()


async def _answer(
    request: Request,
    core: Services,
    app: str,
    until_sent: UntilSent,
    submitted: SubmittedTurn,
    shape: Shape,
    *,
    streams: bool,
) -> Response:
    session_id, turn_index = submitted.turn.session_id, submitted.turn.turn_index
    until_sent.enter_context(core.turns.expect_answer(session_id, turn_index))
    if streams:
        batches = core.log.follow(app, session_id, find_start(submitted))
        beside = partial(core.computing.run, app)
        response: Response = EventStream(request, _frames(batches, turn_index, shape, beside))
    else:
        turn = await unless_gone(request, core.turns.wait(app, session_id, turn_index))
        if turn is None:
            return Response()  # nobody is there to read it
        raise_for(turn)
        pages, size = core.log.turn_pages(app, session_id, turn_index), 0
        async with closing(pages):
            async for page in pages:
                size += sum(len(event.data) for event in page)
                shape.keep(join(piece_of(event.decode()) for event in page))
        end = end_of({"outcome": turn.outcome, "stop_reason": turn.stop_reason, "usage": turn.usage})
        if size <= LARGE_BYTES:
            response = json_response(shape.whole(end))
        else:
            body = await core.computing.run(app, lambda: encode(shape.whole(end)))
            response = await piecewise(slices(body), JSON, partial(core.loop_turns.slice, app))
    response.headers[SESSION_HEADER] = session_id
    return response


async def _frames(
    batches: AsyncIterator[list[StoredEvent]], turn_index: int, shape: Shape, beside: Beside
) -> AsyncIterator[bytes]:
    for frame in shape.begin():
        yield frame
    async with closing(batches):
        async for batch in batches:
            events = [stored.decode() for stored in batch if stored.turn == turn_index]
            pieces = list(join(map(piece_of, events)))
            ended = next((event for event in events if event["type"] == EventType.TURN_ENDED), None)
            frames = _make_frames(shape, pieces, ended)
            if shape.count_repeated(pieces, ends=ended is not None) > LARGE_BYTES:
                frames = iter(await beside(partial(list, frames)))
            for frame in frames:
                for piece in slices(frame):
                    yield piece
            if ended is not None:
                return


def _make_frames(shape: Shape, pieces: Iterable[Piece], ended: Json | None) -> Iterator[bytes]:
    yield from shape.feed(pieces)
    if ended is not None:
        yield from shape.end(end_of(ended))
