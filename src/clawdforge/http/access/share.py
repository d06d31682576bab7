"""Counts a request for its app before anything else is done for it, and tells in its headers what is left."""

from contextlib import ExitStack
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import Scope

from clawdforge.core.models.principal import Principal
from clawdforge.core.services.all import Services
from clawdforge.core.services.shares import Rate

ALWAYS_STREAMS: Final = ("/stream", "/ag-ui", "/ui", "/acp")
"""How the paths of other dialects end that answer with a stream, or become one, whatever is accepted."""
NEVER_STREAMS: Final = "/mcp"
"""Its callers must accept streams with every request, and are sent none."""
BODY_SAYS: Final = "/v1/"
"""How the paths begin whose body says whether they stream: their handlers call `enter_as_reader`."""

RATE: Final = "rate"
LEAVING: Final = "leaving"
"""In the state of a request: what is left of its app's rate, and what is to end when it has been answered."""


def wants_stream(request: Request) -> bool:
    """Whether the caller asks for server-sent events."""
    kinds = (part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(","))
    return "text/event-stream" in kinds


def opens_stream(request: Request) -> bool:
    """Whether the answer counts as a reader, as far as that can be seen before the body."""
    path: str = request.scope["path"]
    if path == NEVER_STREAMS or path.startswith(BODY_SAYS):
        return False
    return wants_stream(request) or path.endswith(ALWAYS_STREAMS)


async def enter_share(request: Request) -> None:
    """Raise LimitExceeded when its app has all it may have. The operator has no limit."""
    principal: Principal = request.state.principal
    if principal.admin:
        return
    services: Services = request.app.state.services
    shares = services.shares
    rate = await shares.count_request(principal.app)
    setattr(request.state, RATE, rate)
    if rate is not None and rate.refusal is not None:
        raise rate.refusal
    leaving: ExitStack = getattr(request.state, LEAVING)
    leaving.enter_context(shares.open_request(principal.app, is_reader=opens_stream(request)))


def enter_as_reader(request: Request) -> None:
    """Raise LimitExceeded when its app has all the streams that it may have. Before anything is changed."""
    principal: Principal = request.state.principal
    if principal.admin:
        return
    services: Services = request.app.state.services
    leaving: ExitStack = getattr(request.state, LEAVING)
    leaving.enter_context(services.shares.open_reader(principal.app))


def tell_rate(scope: Scope, headers: MutableHeaders) -> None:
    """In the words of the IETF's draft on RateLimit headers.

    What is left is told once it is less than half: until then equal requests have equal answers, so that a
    foreign id cannot be told from an unknown one by any byte.
    """
    rate: Rate | None = scope["state"].get(RATE)
    if rate is not None:
        headers["RateLimit-Policy"] = f'"requests";q={rate.quota};w={rate.window}'
        if rate.refusal is not None or rate.left * 2 < rate.quota:
            headers["RateLimit"] = f'"requests";r={rate.left};t={rate.full_in}'
