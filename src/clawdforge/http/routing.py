"""Routes that authenticate before they read anything else, and the dependencies of handlers."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import orjson
from fastapi import Depends, Query
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from clawdforge.core.model import Principal
from clawdforge.core.services.all import Services
from clawdforge.http.auth import require_admin, require_app
from clawdforge.wire.errors import InvalidJson, InvalidRequest, UnsupportedMediaType

BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
SAFE_OPENINGS: Final = 128
SPARE_LEVELS: Final = 64
MAX_CURSOR: Final = 2**53
DIGITS: Final = bytes(ord("0") if chr(byte).isdecimal() else ord(" ") for byte in range(256))
LONG_NUMBER: Final = b"0" * 19
"""How a number that may have more than 64 bits looks after `translate` with DIGITS."""

STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
INTEGER: Final = re.compile(rb"(?<![\w.+-])-?\d{19,}(?![\w.])")


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


class OpenRoute(APIRoute):
    """A route that anybody may call."""

    dialect: ClassVar[str] = "forge"
    credential: ClassVar[Credential | None] = None
    takes_json: ClassVar[bool] = True

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """A path that is spelled out somewhere is no id: `/sessions/import` takes what it takes itself."""
        if self.param_convertors and scope["path"] in scope["app"].state.literal_paths:
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        has_body = self.body_field is not None
        credential, dialect, takes_json = self.credential, self.dialect, self.takes_json

        async def check_and_handle(request: Request) -> Response:
            request.state.dialect = dialect
            if credential is not None:
                request.state.principal = await credential.check(request)
            if takes_json and request.method in BODY_METHODS:
                raw = await request.body()
                _check_type(request, raw)
                request = JsonRequest(request, raw or b"{}", parse_body(raw) if has_body and raw else {})
            return await handle(request)

        return check_and_handle


class AppRoute(OpenRoute):
    """A route that needs an app's token."""

    credential = Credential(require_app)


class AdminRoute(OpenRoute):
    """A route that needs the operator's token."""

    credential = Credential(require_admin)


def parse_body(raw: bytes) -> Any:
    """Parse a body as JSON that we can also write: no NaN, no lone surrogates, not nested too deeply."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(f"the body is not valid JSON: {error}") from None
    if raw.count(b"{") + raw.count(b"[") > SAFE_OPENINGS:
        nested = value
        for _ in range(SPARE_LEVELS):
            nested = [nested]
        try:
            orjson.dumps(nested)
        except TypeError:
            raise InvalidJson("the body is nested too deeply") from None
    _check_integers(raw)
    return value


def _check_integers(raw: bytes) -> None:
    """Refuse integers of more than 64 bits, which the parser would silently turn into floats."""
    if LONG_NUMBER not in raw.translate(DIGITS):
        return
    for found in INTEGER.findall(STRING.sub(b"", raw)):
        if not -(2**63) <= int(found) < 2**64:
            number = found[:40].decode()
            raise InvalidRequest(f"{number} has more than 64 bits and cannot be stored; send it as text")


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


async def _until_sent() -> AsyncIterator[ExitStack]:
    """What a handler puts into it is left when its answer has been sent."""
    with ExitStack() as stack:
        yield stack


def wants_stream(request: Request) -> bool:
    """Whether the caller asks for server-sent events."""
    kinds = (part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(","))
    return "text/event-stream" in kinds


Core: TypeAlias = Annotated[Services, Depends(_services)]
App: TypeAlias = Annotated[str, Depends(_app)]
UntilSent: TypeAlias = Annotated[ExitStack, Depends(_until_sent)]
Limit: TypeAlias = Annotated[int, Query(ge=1, le=1000)]
After: TypeAlias = Annotated[int, Query(ge=0, le=MAX_CURSOR)]
