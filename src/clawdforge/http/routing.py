"""Routes that authenticate before they read anything else, and the dependencies of handlers."""

import asyncio
import re
from collections.abc import Awaitable, Callable
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
from clawdforge.http.access.share import enter_share
from clawdforge.http.connections.connection import note_known
from clawdforge.http.head import head_of
from clawdforge.http.leaving import KEY as LEAVING
from clawdforge.http.leaving import Leaving
from clawdforge.http.requests.arguments import Call
from clawdforge.http.requests.bodies import BodyBudget, limit_body, read_body
from clawdforge.http.requests.deadlines import Deadlines
from clawdforge.http.requests.json_bodies import FEW_VALUES, MANY_VALUES, parse_body
from clawdforge.http.requests.marks import Depends, Query
from clawdforge.http.requests.models import build_taken
from clawdforge.http.requests.multipart import FORM_BYTES
from clawdforge.http.requests.parameters import Taken, find_taken
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import (
    BodyTooLarge,
    FileTooLarge,
    ForgeAPIError,
    InvalidRequest,
    UnsupportedMediaType,
)
from clawdforge.wire.json_bounds import LARGE_BYTES

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
OWN_LIMIT: Final = "has_own_limit"
MANY: Final = "takes_many_values"
BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
MAX_CURSOR: Final = 2**53
NAMED_PARAMETERS: Final = 5
NAMED_CHARS: Final = 64


class RouteRequest(Request):
    """A request that has come to its route."""

    def limit(self, most: int, refusal: type[ForgeAPIError]) -> None:
        """How long its body may be."""
        self._receive = limit_body(self, most, refusal)

    def keep(self, raw: bytes, value: Any) -> None:
        """Its body has been read and parsed; an empty one counts as an empty object."""
        self._body, self._json = raw or b"{}", value


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
Handle: TypeAlias = Callable[[RouteRequest], Awaitable[Response]]


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
        scope.setdefault("state", {})["dialect"] = self.dialect
        request = RouteRequest(scope, receive, send)
        response = await handler(request)
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
        credential, takes_json, path = self.credential, self.takes_json, self.path_format
        takes_body = not self.methods.isdisjoint(BODY_METHODS)
        known = taken.list_queries() if self.refuses_unknown else None

        has_own_limit = getattr(self.endpoint, OWN_LIMIT, False)
        most_values = MANY_VALUES if getattr(self.endpoint, MANY, False) else FEW_VALUES

        async def check_and_handle(request: RouteRequest) -> Response:
            """What is sent after this, as a stream, is no longer part of it."""
            deadlines: Deadlines = request.scope["app"].state.deadlines
            with deadlines():
                return await check_and_answer(request)

        async def check_and_answer(request: RouteRequest) -> Response:
            app = "" if credential is None else (await admit(request, credential, path)).app
            if known is not None:
                _check_parameters(request, known)
            if not takes_body:
                return await call(request)
            settings: HttpSettings = request.scope["app"].state.settings
            if not takes_json:
                request.limit(settings.max_file_bytes + FORM_BYTES, FileTooLarge)
                return await call(request)
            request.limit(settings.max_body_bytes, BodyTooLarge)
            return await read_and_answer(request, app)

        async def read_and_answer(request: RouteRequest, app: str) -> Response:
            bodies: BodyBudget = request.scope["app"].state.bodies
            services: Services = request.scope["app"].state.services
            with bodies.claim(app) as claim:
                try:
                    turn = partial(services.loop_turns.enter, app)
                    raw = await read_body(request, claim, turn, is_open=credential is None)
                except ClientDisconnect:
                    return Response()  # nobody is there to read it
                _check_type(request, raw)
                value = await _parse(services, app, raw, most_values) if has_body else {}
                request.keep(raw, value)
                return await call(request, value)

        return check_and_answer if has_own_limit else check_and_handle


async def admit(request: Request, credential: Credential, path: str) -> Principal:
    """Who calls, if it may call this now. `path` is that of the route."""
    scope = request.scope
    known = scope["app"].state
    principal = await credential.check(request)
    traces = head_of(scope).list(b"traceparent")  # two of them say nothing
    trace = read_traceparent(traces[0].decode("latin-1")) if len(traces) == 1 else None
    if trace is not None:
        principal = replace(principal, traceparent=trace)
    scope["state"]["principal"] = principal
    note_known(request)
    known.lanes.remember(scope, principal.app)
    require_scope(request, known.scopes.get((scope["method"], path)))
    await enter_share(request)
    await check_binding(request, path)
    return principal


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


async def _parse(services: Services, app: str, raw: bytes, most_values: int) -> Any:
    if len(raw) <= LARGE_BYTES:
        return parse_body(raw, most_values) if raw else {}
    return await services.computing.run(app, partial(parse_body, raw, most_values))


def _check_type(request: Request, raw: bytes) -> None:
    kind = (head_of(request.scope).first(b"content-type") or b"").partition(b";")[0].strip().lower()
    if raw and kind != b"application/json":
        raise UnsupportedMediaType


def _services(request: Request) -> Services:
    services: Services = request.scope["app"].state.services
    return services


def _app(request: Request) -> str:
    principal: Principal = request.scope["state"]["principal"]
    return principal.app


def _caller(request: Request) -> Principal:
    principal: Principal = request.scope["state"]["principal"]
    return principal


def _until_sent(request: Request) -> Leaving:
    """What a handler puts into it is left when its answer has been sent."""
    leaving: Leaving = request.scope["state"][LEAVING]
    return leaving


Core: TypeAlias = Annotated[Services, Depends(_services)]
App: TypeAlias = Annotated[str, Depends(_app)]
Caller: TypeAlias = Annotated[Principal, Depends(_caller)]
UntilSent: TypeAlias = Annotated[Leaving, Depends(_until_sent)]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=1000)]
After: TypeAlias = Annotated[int, Query(ge=0, le=MAX_CURSOR)]
