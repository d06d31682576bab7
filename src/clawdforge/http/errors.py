"""Turns failures into replies: one body on every path, with the status that a dialect's callers expect."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import orjson
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from clawdforge.http.requests.arguments import BadArguments
from clawdforge.wire.base import Json
from clawdforge.wire.error_body import error_body
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import (
    ForgeAPIError,
    InternalError,
    InvalidRequest,
    MethodNotAllowed,
    MissingParameter,
    RouteNotFound,
)

log = logging.getLogger(__name__)

JSON: Final = "application/json"
UNREADY: Final = 503
NO_MORE: Final = 204
"""Tells an EventSource not to reconnect."""

OVERRIDES: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {
        "deepagent": {ErrorCode.SESSION_CLOSED: 409},
        "hermes": {ErrorCode.SESSION_CLOSED: 409, ErrorCode.INVALID_REQUEST: 400},
        "openai": {ErrorCode.SESSION_CLOSED: 409, ErrorCode.INVALID_REQUEST: 400},
        "run": {ErrorCode.AGENT_NOT_INSTALLED: 503},
    }
)
"""Where a dialect's callers expect another status for a code."""


TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
)
UNSURE: Final = frozenset({ErrorCode.STORE_UNAVAILABLE})
"""After these nobody knows whether the prompt was taken. The SDKs of OpenAI send a request again by
themselves, without a key: that would run it twice."""


def error_response(error: ForgeAPIError, dialect: str = "forge") -> Response:
    """The reply to a failure."""
    status = OVERRIDES.get(dialect, {}).get(error.code, error.status)
    headers: dict[str, str] = {}
    if error.code is ErrorCode.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    body = error_body(error.code, error.message, error.extra)
    if dialect == "openai":
        body["error"] = _openai_error(error, status)
        headers["X-Should-Retry"] = str(error.is_passing and error.code not in UNSURE).lower()
    return Response(
        orjson.dumps(body, default=str),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )


def whole_answer(error: ForgeAPIError, headers: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
    """The reply as it goes over the wire, where no request was read that it could be the answer to."""
    answer = error_response(error)
    lines = [STATUS_LINE[answer.status_code]]
    for name, value in (*headers, *answer.raw_headers, CLOSE_HEADER):
        lines += [name, b": ", value, b"\r\n"]
    return b"".join([*lines, b"\r\n", bytes(answer.body)])


def _openai_error(error: ForgeAPIError, status: int) -> Json:
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"message": error.message, "type": kind, "param": None, "code": str(error.code)}


def on_forge_error(request: Request, error: ForgeAPIError) -> Response:
    """Handles a failure that a service or this layer raised."""
    if error.code is ErrorCode.INTERNAL:
        line = {"request_id": request.state.request_id}
        log.error("request %s failed", request.state.request_id, exc_info=error, extra=line)
        error = InternalError()
    return error_response(error, getattr(request.state, "dialect", "forge"))


def on_validation_error(request: Request, error: BadArguments) -> Response:
    """Explains in one line what pydantic found."""
    problems = error.problems
    missing = [str(problem["loc"][-1]) for problem in problems if problem["type"] == "missing"]
    if missing and getattr(request.state, "dialect", "") == "hermes":
        named = MissingParameter(f"Missing required field(s): {', '.join(missing)}")
        return on_forge_error(request, named)
    return on_forge_error(request, _explain(problems))


def on_http_exception(request: Request, error: HTTPException) -> Response:
    """Handles what the router refuses: an unknown path, or a method that the path does not have."""
    status = error.status_code
    if status == 405:
        response = error_response(MethodNotAllowed())
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
        return response
    return error_response(RouteNotFound() if status == 404 else InvalidRequest())


def _methods(request: Request) -> set[str]:
    found: set[str] = set()
    for route in request.app.router.routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= route.methods
    return found | ({"HEAD"} if "GET" in found else set())


def _explain(problems: Sequence[Any]) -> InvalidRequest:
    lines = []
    for problem in problems[:5]:
        where = [str(part) for part in problem["loc"]]
        name = ".".join(where[1:]) or where[0]
        if problem["type"] == "missing" and where[0] == "query":
            return MissingParameter(f"{name} is required")
        lines.append(f"{name}: {problem['msg']}")
    return InvalidRequest("; ".join(lines) or None)


EXPECTED: Final = (ForgeAPIError, BadArguments, HTTPException)
"""What is no bug of ours."""


def explain(request: Request, error: ForgeAPIError | BadArguments | HTTPException) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, BadArguments):
        return on_validation_error(request, error)
    if isinstance(error, HTTPException):
        return on_http_exception(request, error)
    return on_forge_error(request, error)


class JsonResponse(Response):
    """JSON that is written already. Its headers are as Starlette makes them, with fewer calls."""

    media_type = JSON

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.status_code, self.body, self.background = status, body, None
        self.raw_headers = [(b"content-length", b"%d" % len(body)), (b"content-type", JSON.encode())]


def json_response(body: BaseModel | Json | list[Json], status: int = 200) -> Response:
    """A success."""
    return JsonResponse(encode(body), status)


def encode(body: BaseModel | Json | list[Json]) -> bytes:
    """JSON of a model, or of plain values with models among them."""
    return orjson.dumps(body, default=_fields)


def _fields(value: Any) -> Json:
    """A model's own values, which orjson goes on with: a third of the time of pydantic's own encoder."""
    if not isinstance(value, BaseModel):
        raise TypeError(f"not JSON: {type(value).__name__}")
    return {**value.__dict__, **value.model_extra} if value.model_extra else value.__dict__
