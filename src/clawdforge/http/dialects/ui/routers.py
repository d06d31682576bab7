"""The routes of the UI streams: submit the new message of a conversation, and read its turn from anywhere.

A frame's id is the number of its event and of the frame within it. A reader that was cut off sends its last
one, and the map runs over the turn again from its start, which gives the same frames.
"""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Final, Protocol

import orjson
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.principal import Principal
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.all import Services
from clawdforge.http.connections.waiting import closing
from clawdforge.http.dialects.ui.agui import AguiMap
from clawdforge.http.dialects.ui.vercel import VercelMap
from clawdforge.http.errors import NO_MORE
from clawdforge.http.replies.sse import EventStream, find_start
from clawdforge.http.requests.marks import Header
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Caller, Core, takes_many_values
from clawdforge.wire.base import Json
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.event import EventType
from clawdforge.wire.sse import encode
from clawdforge.wire.turn import TurnRequest
from clawdforge.wire.ui import AguiRun, UiChat

STREAM: Final[Json] = {"content": {"text/event-stream": {}}}
DONE: Final = b"data: [DONE]\n\n"
VERSION: Final = "x-vercel-ai-ui-message-stream"
CURSOR: Final = re.compile(r"([0-9]{1,15})\.([0-9]{1,9})")
MAX_PROMPT: Final = 16 * 1024 * 1024
KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=64)]
Place = tuple[int, int]


class Map(Protocol):
    def take(self, event: Json) -> Iterator[Json]: ...


def agui_routers() -> list[Router]:
    router = _router("AG-UI")
    at = "/sessions/{session_id}/ag-ui"
    router.post(at, response_class=Response, responses={200: STREAM})(run_agui)
    return [router]


def vercel_routers() -> list[Router]:
    router = _router("Vercel UI stream")
    at = "/sessions/{session_id}/ui"
    router.post(at, response_class=Response, responses={200: STREAM})(chat)
    router.get(f"{at}/{{chat_id}}/stream", response_class=Response, responses={200: STREAM})(resume)
    return [router]


def _router(tag: str) -> Router:
    return Router(AppRoute, tags=[tag])


@takes_many_values
async def run_agui(
    request: Request,
    core: Core,
    caller: Caller,
    session_id: str,
    body: AguiRun,
    last_event_id: LastEventId = None,
) -> Response:
    """Submit the last message of an AG-UI run, and stream the turn as AG-UI's events.

    The same `runId` finds the same turn; with `Last-Event-ID` its stream goes on after that frame.
    """
    if body.tools:
        raise InvalidRequest("tools of a page are not called: agents run their own; leave them out")
    made = await _submit(core, caller, session_id, body.messages[-1], f"agui-{body.runId}")
    name = f"{session_id}-{made.turn.turn_index}"
    events = AguiMap(name, body.threadId, body.runId)
    return _stream(request, core, caller.app, made, events, _parse(last_event_id), b"")


@takes_many_values
async def chat(
    request: Request,
    core: Core,
    caller: Caller,
    session_id: str,
    body: UiChat,
    last_event_id: LastEventId = None,
) -> Response:
    """Submit the last message of a chat, and stream the turn as Vercel's UI messages.

    The same message, by its id, finds the same turn.
    """
    if body.trigger != "submit-message":
        raise InvalidRequest("an answer is made anew with POST /sessions/{id}/retry, not here")
    last = body.messages[-1]
    key = str(last.get("id") or "")
    made = await _submit(core, caller, session_id, last, f"ui-{key}" if KEY.fullmatch(key) else None)
    name = f"{session_id}-{made.turn.turn_index}"
    return _stream(request, core, caller.app, made, VercelMap(name), _parse(last_event_id), DONE)


async def resume(
    request: Request,
    core: Core,
    app: App,
    session_id: str,
    chat_id: str,  # noqa: ARG001 - the page's own name of it, which the session need not know
    last_event_id: LastEventId = None,
) -> Response:
    """The stream of the turn that runs, from its start or after a frame that was seen; 204 if none runs."""
    state = await core.sessions.get(app, session_id)
    if state.running_turn is None:
        return Response(status_code=NO_MORE)
    turn = await core.turns.get(app, session_id, state.running_turn)
    found = SubmittedTurn(turn, state.row.head, replayed=True)
    events = VercelMap(f"{session_id}-{turn.turn_index}")
    return _stream(request, core, app, found, events, _parse(last_event_id), DONE)


async def _submit(
    core: Services, caller: Principal, session_id: str, message: Json, key: str | None
) -> SubmittedTurn:
    text = _read_text(message)
    request = TurnRequest(prompt=text)
    return await core.turns.submit(caller.app, session_id, request, key, caller)


def _read_text(message: Json) -> str:
    """The words of the new message: AG-UI has them as `content`, Vercel as `parts`."""
    if message.get("role") != "user":
        raise InvalidRequest("the last message must be the user's: it is what the agent is asked")
    content: Any = message.get("content") if message.get("parts") is None else message.get("parts")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "".join(map(_read_part, parts))
    if not text.strip() or len(text) > MAX_PROMPT:
        raise InvalidRequest(f"the last message is empty, or has more than {MAX_PROMPT:,} characters")
    return text


def _read_part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    if not isinstance(text, str):
        raise InvalidRequest("only text is taken; upload files with POST /files")
    return text


def _parse(cursor: str | None) -> Place:
    found = CURSOR.fullmatch(cursor or "")
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _stream(
    request: Request,
    core: Services,
    app: str,
    made: SubmittedTurn,
    events: Map,
    after: Place,
    farewell: bytes,
) -> Response:
    turn = made.turn
    batches = core.log.follow(app, turn.session_id, find_start(made))
    response = EventStream(request, _frames(batches, turn.turn_index, events, after, farewell))
    if farewell:
        response.headers[VERSION] = "v1"
    return response


async def _frames(
    batches: AsyncIterator[list[StoredEvent]], turn_index: int, events: Map, after: Place, farewell: bytes
) -> AsyncIterator[bytes]:
    async with closing(batches):
        async for batch in batches:
            mine = [stored for stored in batch if stored.turn == turn_index]
            piece = b"".join(_encode(stored, events, after) for stored in mine)
            if piece:
                yield piece
            if any(stored.type == EventType.TURN_ENDED for stored in mine):
                if farewell:
                    yield farewell
                return


def _encode(stored: StoredEvent, events: Map, after: Place) -> bytes:
    return b"".join(
        encode(orjson.dumps(one), id=f"{stored.seq}.{number}")
        for number, one in enumerate(events.take(stored.decode()), 1)
        if (stored.seq, number) > after
    )
