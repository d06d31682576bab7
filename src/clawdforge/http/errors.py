"""Failures over HTTP: the only place with status codes, and the one body on every path."""

import logging
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from clawdforge.core.errors import Conflict, ForgeError, InvalidRequest, NotFound
from clawdforge.wire.base import Json
from clawdforge.wire.error import ErrorCode, error_body

log = logging.getLogger(__name__)

STATUS: Final[Mapping[ErrorCode, int]] = MappingProxyType(
    {
        ErrorCode.INVALID_JSON: 400,
        ErrorCode.INVALID_REQUEST: 422,
        ErrorCode.MISSING_PARAMETER: 400,
        ErrorCode.UNSUPPORTED_MEDIA_TYPE: 415,
        ErrorCode.BODY_TOO_LARGE: 413,
        ErrorCode.ROUTE_NOT_FOUND: 404,
        ErrorCode.METHOD_NOT_ALLOWED: 405,
        ErrorCode.UNSUPPORTED: 501,
        ErrorCode.UNAUTHENTICATED: 401,
        ErrorCode.FORBIDDEN: 403,
        ErrorCode.HOST_REFUSED: 421,
        ErrorCode.ORIGIN_REFUSED: 403,
        ErrorCode.SESSION_NOT_FOUND: 404,
        ErrorCode.TURN_NOT_FOUND: 404,
        ErrorCode.PERMISSION_NOT_FOUND: 404,
        ErrorCode.FILE_NOT_FOUND: 404,
        ErrorCode.PERSONA_NOT_FOUND: 404,
        ErrorCode.APP_NOT_FOUND: 404,
        ErrorCode.TOKEN_NOT_FOUND: 404,
        ErrorCode.UNKNOWN_AGENT: 400,
        ErrorCode.UNKNOWN_FILE: 400,
        ErrorCode.WORKSPACE_REFUSED: 400,
        ErrorCode.SESSION_CLOSED: 410,
        ErrorCode.SESSION_BUSY: 409,
        ErrorCode.KEY_REUSED: 409,
        ErrorCode.HEAD_MOVED: 409,
        ErrorCode.TURN_NOT_QUEUED: 409,
        ErrorCode.ALREADY_DECIDED: 409,
        ErrorCode.NO_PREVIOUS_MESSAGE: 409,
        ErrorCode.NOTHING_TO_UNDO: 409,
        ErrorCode.NOTHING_TO_REDO: 409,
        ErrorCode.CONFLICT: 409,
        ErrorCode.POOL_FULL: 503,
        ErrorCode.LIMIT_EXCEEDED: 429,
        ErrorCode.STORE_UNAVAILABLE: 503,
        ErrorCode.STOPPING: 503,
        ErrorCode.AGENT_NOT_INSTALLED: 502,
        ErrorCode.AGENT_START_FAILED: 502,
        ErrorCode.AGENT_AUTH_REQUIRED: 502,
        ErrorCode.AGENT_FAILED: 502,
        ErrorCode.TURN_TIMED_OUT: 504,
        ErrorCode.TURN_INTERRUPTED: 503,
        ErrorCode.RUN_FAILED: 502,
        ErrorCode.INTERNAL: 500,
    }
)

UNREADY: Final = 503
NO_MORE: Final = 204
"""Tells an EventSource not to come again."""

OVERRIDES: Final[Mapping[str, Mapping[ErrorCode, int]]] = MappingProxyType(
    {
        "deepagent": {ErrorCode.SESSION_CLOSED: 409},
        "hermes": {ErrorCode.SESSION_CLOSED: 409, ErrorCode.INVALID_REQUEST: 400},
        "run": {ErrorCode.AGENT_NOT_INSTALLED: 503},
    }
)
"""Where a dialect's callers expect another status for a code."""


class InvalidJson(InvalidRequest):
    """the body is not valid JSON"""

    code = ErrorCode.INVALID_JSON


class MissingParameter(InvalidRequest):
    """a parameter is missing"""

    code = ErrorCode.MISSING_PARAMETER


class UnsupportedMediaType(InvalidRequest):
    """the body must be JSON; send Content-Type: application/json"""

    code = ErrorCode.UNSUPPORTED_MEDIA_TYPE


class BodyTooLarge(InvalidRequest):
    """the body is too large; the limit is CLAWDFORGE_MAX_BODY_BYTES"""

    code = ErrorCode.BODY_TOO_LARGE


class RouteNotFound(NotFound):
    """no such route; GET /openapi.json lists them"""

    code = ErrorCode.ROUTE_NOT_FOUND


class MethodNotAllowed(Conflict):
    """this route does not take that method; the Allow header lists those that it takes"""

    code = ErrorCode.METHOD_NOT_ALLOWED


class HostRefused(ForgeError):
    """this Host is not served here; add it to CLAWDFORGE_ALLOWED_HOSTS"""

    code = ErrorCode.HOST_REFUSED


class OriginRefused(ForgeError):
    """requests from web pages of another origin are refused"""

    code = ErrorCode.ORIGIN_REFUSED


class Internal(ForgeError):
    """something went wrong inside the server; its log has the X-Request-Id of this answer"""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL


def error_response(error: ForgeError, dialect: str = "forge") -> Response:
    """The answer to a failure, in the one shape."""
    status = OVERRIDES.get(dialect, {}).get(error.code, STATUS[error.code])
    headers: dict[str, str] = {}
    if error.code is ErrorCode.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return Response(
        orjson.dumps(error_body(error.code, error.message, error.extra), default=str),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )


async def on_forge_error(request: Request, error: Exception) -> Response:
    """A failure that a service or this layer raised."""
    if not isinstance(error, ForgeError):
        raise TypeError(f"not a failure of ours: {error!r}") from error
    if error.code is ErrorCode.INTERNAL:
        line = {"request_id": request.state.request_id}
        log.error("request %s failed", request.state.request_id, exc_info=error, extra=line)
        error = Internal()
    return error_response(error, getattr(request.state, "dialect", "forge"))


async def on_anything_else(_request: Request, _error: Exception) -> Response:
    """A defect of ours. Whoever called this raises the error again, and the outermost layer logs it."""
    return error_response(Internal())


async def on_validation_error(request: Request, error: Exception) -> Response:
    """What pydantic found, as one line of text."""
    problems: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    missing = [str(problem["loc"][-1]) for problem in problems if problem["type"] == "missing"]
    if missing and getattr(request.state, "dialect", "") == "hermes":
        named = MissingParameter(f"Missing required field(s): {', '.join(missing)}")
        return await on_forge_error(request, named)
    return await on_forge_error(request, _explain(problems))


async def on_http_exception(request: Request, error: Exception) -> Response:
    """What the router itself refuses: an unknown path, or a method that the path does not take."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        response = error_response(MethodNotAllowed())
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
        return response
    return error_response(RouteNotFound() if status == 404 else InvalidRequest())


def _methods(request: Request) -> set[str]:
    found: set[str] = set()
    for route in request.app.state.table:
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


HANDLERS: Final[Mapping[int | type[Exception], Any]] = MappingProxyType(
    {
        ForgeError: on_forge_error,
        RequestValidationError: on_validation_error,
        HTTPException: on_http_exception,
        Exception: on_anything_else,
    }
)


def json_response(body: Json | list[Json], status: int = 200) -> Response:
    """A success."""
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")
