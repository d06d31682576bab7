"""Counts a request for its app before anything else is done for it, and tells in its headers what is left."""

from functools import lru_cache
from typing import Final

from starlette.requests import Request

from clawdforge.core.models.principal import Principal
from clawdforge.core.services.all import Services
from clawdforge.core.services.shares import Rate
from clawdforge.http.head import head_of
from clawdforge.http.leaving import KEY as LEAVING
from clawdforge.http.leaving import Leaving

ALWAYS_STREAMS: Final = ("/stream", "/ag-ui", "/ui", "/acp")
"""How the paths of other dialects end that answer with a stream, or become one, whatever is accepted."""
NEVER_STREAMS: Final = "/mcp"
"""Its callers must accept streams with every request, and are sent none."""
BODY_SAYS: Final = "/v1/"
"""How the paths begin whose body says whether they stream: their handlers call `enter_as_reader`."""

RATE: Final = "rate"
"""In the state of a request: what is left of its app's rate."""

STREAM: Final = "text/event-stream"
MAX_POLICIES: Final = 100


def wants_stream(request: Request) -> bool:
    """Whether the caller asks for server-sent events."""
    accepted = (head_of(request.scope).first(b"accept") or b"").decode("latin-1").lower()
    return STREAM in accepted and STREAM in [part.partition(";")[0].strip() for part in accepted.split(",")]


def opens_stream(request: Request) -> bool:
    """Whether the answer counts as a reader, as far as that can be seen before the body."""
    path: str = request.scope["path"]
    if path == NEVER_STREAMS or path.startswith(BODY_SAYS):
        return False
    return wants_stream(request) or path.endswith(ALWAYS_STREAMS)


async def enter_share(request: Request) -> None:
    """Raise LimitExceeded when its app has all it may have. The operator has no limit."""
    state = request.scope["state"]
    principal: Principal = state["principal"]
    if principal.admin:
        return
    services: Services = request.scope["app"].state.services
    shares = services.shares
    rate = state[RATE] = await shares.count_request(principal.app)
    if rate is not None and rate.refusal is not None:
        raise rate.refusal
    leaving: Leaving = state[LEAVING]
    leaving.enter_context(shares.open_request(principal.app, is_reader=opens_stream(request)))


def enter_as_reader(request: Request) -> None:
    """Raise LimitExceeded when its app has all the streams that it may have. Before anything is changed."""
    principal: Principal = request.state.principal
    if principal.admin:
        return
    services: Services = request.app.state.services
    leaving: Leaving = request.scope["state"][LEAVING]
    leaving.enter_context(services.shares.open_reader(principal.app))


class RateTold:
    """In the words of the IETF's draft on RateLimit headers.

    What is left is told once it is less than half: until then equal requests have equal answers, so that a
    foreign id cannot be told from an unknown one by any byte.
    """

    def __init__(self) -> None:
        self._policy = lru_cache(MAX_POLICIES)(_tell_policy)

    def tell(self, rate: Rate) -> list[tuple[bytes, bytes]]:
        found = [self._policy(rate.quota, rate.window)]
        if rate.refusal is not None or rate.left * 2 < rate.quota:
            found.append((b"ratelimit", f'"requests";r={rate.left};t={rate.full_in}'.encode()))
        return found


def _tell_policy(quota: int, window: int) -> tuple[bytes, bytes]:
    return b"ratelimit-policy", f'"requests";q={quota};w={window}'.encode()
