"""Routes that authenticate before they read anything else, and the dependencies of handlers."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Receive, Scope, Send

from clawdforge.core.models.principal import Principal
from clawdforge.core.rules.traces import read_traceparent
from clawdforge.core.services.all import Services
from clawdforge.http.access.auth import require_admin, require_app, require_scope
from clawdforge.http.access.binding import check_binding
from clawdforge.http.access.share import LEAVING, enter_share
from clawdforge.http.connections.connection import note_known
from clawdforge.http.requests.arguments import Call
from clawdforge.http.requests.bodies import BodyBudget, read_body
from clawdforge.http.requests.json_bodies import FEW_VALUES, MANY_VALUES, parse_body
from clawdforge.http.requests.marks import Depends, Query
from clawdforge.http.requests.models import build_taken
from clawdforge.http.requests.parameters import Taken, find_taken
from clawdforge.wire.errors import InvalidRequest, RequestTimedOut, UnsupportedMediaType
from clawdforge.wire.json_bounds import LARGE_BYTES

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
OWN_LIMIT: Final = "has_own_limit"
MANY: Final = "takes_many_values"
BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
MAX_CURSOR: Final = 2**53
NAMED_PARAMETERS: Final = 5
NAMED_CHARS: Final = 64


class JsonRequest(Request):
    """A request whose body has been read and parsed; an empty one counts as an empty object."""

    def __init__(self, request: Request, raw: bytes, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._body = raw
        self._json = value


@dataclass(frozen=True, slots=True)
class Credential:
    """What a route requires before it reads anything else."""

    check: Callable[[Request], Awaitable[Principal]]


def has_own_limit(endpoint: Endpoint) -> Endpoint:
    """Mark a handler that waits for a turn or a run, which has a time limit, and a queue before it."""
    setattr(endpoint, OWN_LIMIT, True)
    return endpoint


def takes_many_values(endpoint: Endpoint) -> Endpoint:
    """Mark a handler that is sent whole histories."""
    setattr(endpoint, MANY, True)
    return endpoint


PARAMETER: Final = re.compile(r"{(\w+)(:\w+)?}")
Handle: TypeAlias = Callable[[Request], Awaitable[Response]]


class OpenRoute(BaseRoute):
    """A route that anybody may call.

    What its handler takes is found out when the first request comes: for all routes at once that was most of
    what a start took.
    """

    dialect: ClassVar[str] = "forge"
    credential: ClassVar[Credential | None] = None
    takes_json: ClassVar[bool] = True
    refuses_unknown: ClassVar[bool] = False
    """Whether a parameter that the route does not have is refused. Not where probes ask: they add some."""

    def __init__(self, method: str, path: str, endpoint: Callable[..., Any], **about: Any) -> None:
        """`about` is what its description says of it, in FastAPI's words."""
        self.path, self.endpoint, self.about = path, endpoint, about
        self.methods = frozenset({method})
        self.path_format = PARAMETER.sub(r"{\1}", path)
        self.has_parameters = "{" in path

    def plan(self) -> Taken:
        """What its handler takes, with all models whole."""
        build_taken(self.endpoint)
        return find_taken(self.endpoint, self.path)

    @cached_property
    def path_regex(self) -> re.Pattern[str]:
        return compile_path(self.path)[0]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """A path that is spelled out somewhere is no id: `/sessions/import` takes what it takes itself."""
        found = self._find_parameters(scope)
        if found is None:
            return Match.NONE, {}
        more = {"route": self, "endpoint": self.endpoint, "path_params": found}
        return (Match.FULL if scope["method"] in self.methods else Match.PARTIAL), more

    def _find_parameters(self, scope: Scope) -> dict[str, Any] | None:
        path: str = scope["path"]
        if not self.has_parameters:
            return {} if path == self.path else None
        match = None if path in scope["app"].state.literal_paths else self.path_regex.match(path)
        return match and match.groupdict()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in self.methods:
            raise HTTPException(status_code=405)
        handler: Handle | None = self.__dict__.get("handler")
        if handler is None:
            handler = await asyncio.to_thread(self._prepare, scope["app"])
        response = await handler(Request(scope, receive, send))
        await response(scope, receive, send)

    def _prepare(self, app: Any) -> Handle:
        """It takes up to a tenth of a second, so not in the loop. One at a time: routes share models."""
        with app.state.planning:
            return self.handler

    @cached_property
    def handler(self) -> Handle:
        taken = self.plan()
        call = Call(self.endpoint, taken)
        has_body = taken.body is not None
        credential, dialect, takes_json = self.credential, self.dialect, self.takes_json
        path = self.path_format
        known = taken.list_queries() if self.refuses_unknown else None

        has_own_limit = getattr(self.endpoint, OWN_LIMIT, False)
        most_values = MANY_VALUES if getattr(self.endpoint, MANY, False) else FEW_VALUES

        async def check_and_handle(request: Request) -> Response:
            """What is sent after this, as a stream, is no longer part of it."""
            try:
                async with asyncio.timeout(request.app.state.settings.request_secs) as limit:
                    return await check_and_answer(request)
            except TimeoutError:
                if limit.expired():
                    raise RequestTimedOut from None
                raise

        async def check_and_answer(request: Request) -> Response:
            request.state.dialect = dialect
            if credential is not None:
                await admit(request, credential, path)
            if known is not None:
                _check_parameters(request, known)
            if takes_json and request.method in BODY_METHODS:
                return await read_and_answer(request)
            return await call(request)

        async def read_and_answer(request: Request) -> Response:
            bodies: BodyBudget = request.app.state.bodies
            app = "" if credential is None else request.state.principal.app
            with bodies.claim(app) as claim:
                try:
                    turn = partial(request.app.state.services.loop_turns.enter, app)
                    raw = await read_body(request, claim, turn, is_open=credential is None)
                except ClientDisconnect:
                    return Response()  # nobody is there to read it
                _check_type(request, raw)
                value = await _parse(request, app, raw, most_values) if has_body else {}
                return await call(JsonRequest(request, raw or b"{}", value), value)

        return check_and_answer if has_own_limit else check_and_handle


async def admit(request: Request, credential: Credential, path: str) -> Principal:
    """Who calls, if it may call this now. `path` is that of the route."""
    found = await credential.check(request)
    trace = read_traceparent(_find_traceparent(request))
    principal = request.state.principal = replace(found, traceparent=trace) if trace else found
    note_known(request)
    request.app.state.lanes.remember(request.scope, principal.app)
    require_scope(request, request.app.state.scopes.get((request.method, path)))
    await enter_share(request)
    await check_binding(request, path)
    return principal


def _find_traceparent(request: Request) -> str | None:
    """The header, if there is one; two of them say nothing."""
    found = request.headers.getlist("traceparent")
    return found[0] if len(found) == 1 else None


class AppRoute(OpenRoute):
    """A route that needs an app's token."""

    credential = Credential(require_app)
    refuses_unknown = True


class AdminRoute(OpenRoute):
    """A route that needs the operator's token."""

    credential = Credential(require_admin)
    refuses_unknown = True


def _check_parameters(request: Request, known: frozenset[str]) -> None:
    """Refuse what would be ignored: a misspelled `before` would silently give the first page."""
    if not request.scope["query_string"]:
        return
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        names = ", ".join(name[:NAMED_CHARS] for name in unknown[:NAMED_PARAMETERS])
        takes = f"takes {', '.join(sorted(known))}" if known else "takes no parameters"
        raise InvalidRequest(f"unknown parameter: {names}; this route {takes}")


async def _parse(request: Request, app: str, raw: bytes, most_values: int) -> Any:
    if len(raw) <= LARGE_BYTES:
        return parse_body(raw, most_values) if raw else {}
    services: Services = request.app.state.services
    return await services.computing.run(app, partial(parse_body, raw, most_values))


def _check_type(request: Request, raw: bytes) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if raw and kind != "application/json":
        raise UnsupportedMediaType


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _app(request: Request) -> str:
    principal: Principal = request.state.principal
    return principal.app


async def _caller(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


async def _until_sent(request: Request) -> ExitStack:
    """What a handler puts into it is left when its answer has been sent."""
    leaving: ExitStack = getattr(request.state, LEAVING)
    return leaving


Core: TypeAlias = Annotated[Services, Depends(_services)]
App: TypeAlias = Annotated[str, Depends(_app)]
Caller: TypeAlias = Annotated[Principal, Depends(_caller)]
UntilSent: TypeAlias = Annotated[ExitStack, Depends(_until_sent)]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=1000)]
After: TypeAlias = Annotated[int, Query(ge=0, le=MAX_CURSOR)]
