"""What all hermes routes share: how they fail, how they name a session, and how they show a whole one."""

from functools import partial
from typing import Annotated, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.rules.transcripts import Transcript
from clawdforge.core.services.all import Services
from clawdforge.http.dialects.hermes import shapes
from clawdforge.http.errors import encode
from clawdforge.http.replies.piecewise import piecewise, slices
from clawdforge.http.requests.marks import Depends, Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import AppRoute, OpenRoute

SessionId: TypeAlias = Annotated[str, Query(min_length=1, max_length=4096)]
StreamId: TypeAlias = Annotated[str, Query(min_length=1, max_length=8192)]
FEW_MESSAGES: Final = 200


def _is_page(request: Request) -> bool:
    prefix: str = request.app.state.settings.hermes_prefix
    return bool(prefix) and request.url.path.startswith(f"{prefix}/")


Page: TypeAlias = Annotated[bool, Depends(_is_page)]
"""Whether the request came under the prefix, as those of hermes' own page do. There a prompt that was cut off
is a message at once, since the page would wait for its answer; `shapes.workspace` says what else differs."""


class OpenHermesRoute(OpenRoute):
    """A route of the dialect that anybody may call; it fails as the rest of them do."""

    dialect = "hermes"


class HermesRoute(AppRoute):
    """A route whose callers expect 400 for a body that is wrong, and 409 from a session that has ended."""

    dialect = "hermes"
    refuses_unknown = False  # its callers send parameters that other servers of this dialect have


async def whole_reply(core: Services, app: str, found: Transcript, page: bool) -> Response:
    """A session with its messages; one with many is written out beside all other requests."""
    if len(found.entries) <= FEW_MESSAGES:
        return Response(_encode_whole(found, page), media_type="application/json")
    body = await core.computing.run(app, partial(_encode_whole, found, page))
    return await piecewise(slices(body), "application/json", partial(core.loop_turns.slice, app))


def _encode_whole(found: Transcript, page: bool) -> bytes:
    return encode({"ok": True, "session": shapes.session(found, page)})


def router(prefix: str) -> Router:
    return Router(HermesRoute, prefix=prefix, tags=["hermes dialect"])
