"""Completes FastAPI's OpenAPI document with every status that a route can answer."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from clawdforge.http.errors import OVERRIDES
from clawdforge.http.routing import BODY_METHODS, OpenRoute
from clawdforge.wire.base import Json
from clawdforge.wire.error_body import ErrorBody
from clawdforge.wire.error_codes import ErrorCode as E
from clawdforge.wire.errors import BY_CODE

ANYWHERE: Final = (E.HOST_REFUSED, E.ORIGIN_REFUSED, E.INTERNAL, E.STORE_UNAVAILABLE, E.STOPPING)
WITH_TOKEN: Final = (E.UNAUTHENTICATED, E.FORBIDDEN)
WITH_BODY: Final = (E.INVALID_JSON, E.INVALID_REQUEST, E.BODY_TOO_LARGE, E.UNSUPPORTED_MEDIA_TYPE)
BY_NAME: Final[Mapping[str, E]] = {
    "session_id": E.SESSION_NOT_FOUND,
    "turn_index": E.TURN_NOT_FOUND,
    "permission_id": E.PERMISSION_NOT_FOUND,
    "token_id": E.TOKEN_NOT_FOUND,
    "file_token": E.FILE_NOT_FOUND,
    "name": E.PERSONA_NOT_FOUND,
    "budget_id": E.BUDGET_NOT_FOUND,
    "share_id": E.SHARE_NOT_FOUND,
    "node": E.NODE_NOT_FOUND,
    "endpoint_id": E.WEBHOOK_NOT_FOUND,
    "delivery_id": E.DELIVERY_NOT_FOUND,
    "schedule_id": E.SCHEDULE_NOT_FOUND,
}
"""The failure of each kind of id in a path."""

SPENDING: Final = (E.LIMIT_EXCEEDED, E.BUDGET_EXCEEDED)
TURN: Final = (E.SESSION_CLOSED, E.SESSION_BUSY, E.KEY_REUSED, E.HEAD_MOVED, E.UNKNOWN_FILE, *SPENDING)
AGENT: Final = (
    *(E.AGENT_NOT_INSTALLED, E.AGENT_START_FAILED, E.AGENT_AUTH_REQUIRED, E.AGENT_FAILED),
    *(E.TURN_TIMED_OUT, E.TURN_INTERRUPTED),
)
HISTORY: Final = (E.SESSION_CLOSED, E.SESSION_BUSY, E.HEAD_MOVED)
CREATE: Final = (
    *(E.UNKNOWN_AGENT, E.WORKSPACE_REFUSED, E.PERSONA_NOT_FOUND, E.SESSION_NOT_FOUND, E.SESSION_CLOSED),
    E.LIMIT_EXCEEDED,
)
BUDGET: Final = (E.SESSION_NOT_FOUND, E.TOKEN_NOT_FOUND, E.LIMIT_EXCEEDED)
BY_ROUTE: Final[Mapping[str, tuple[E, ...]]] = {
    "POST /login": (E.UNAUTHENTICATED, E.FORBIDDEN),
    "POST /api/auth/login": (E.UNAUTHENTICATED, E.FORBIDDEN),
    "GET /api/auth/status": (E.UNAUTHENTICATED, E.FORBIDDEN),
    "POST /logout": (E.UNAUTHENTICATED,),
    "POST /sessions": (*CREATE, E.POOL_FULL),
    "POST /api/sessions": CREATE,
    "POST /api/sessions/{session_id}/messages": TURN,
    "POST /api/sessions/{session_id}/end": (E.SESSION_BUSY,),
    "PATCH /sessions/{session_id}": (E.UNKNOWN_AGENT, E.SESSION_BUSY, E.HEAD_MOVED),
    "DELETE /sessions/{session_id}": (E.SESSION_BUSY,),
    "POST /sessions/{session_id}/purge": (E.SESSION_BUSY,),
    "POST /sessions/{session_id}/turn": (*TURN, *AGENT),
    "POST /sessions/{session_id}/turns": TURN,
    "POST /sessions/{session_id}/ag-ui": TURN,
    "POST /sessions/{session_id}/ui": TURN,
    "DELETE /sessions/{session_id}/turns/{turn_index}": (E.TURN_NOT_QUEUED,),
    "PATCH /sessions/{session_id}/turns/{turn_index}": (
        *(E.TURN_NOT_QUEUED, E.CONFLICT, E.UNKNOWN_FILE, E.LIMIT_EXCEEDED),
    ),
    "POST /sessions/{session_id}/permissions/{permission_id}": (E.ALREADY_DECIDED,),
    "POST /sessions/{session_id}/undo": (*HISTORY, E.NOTHING_TO_UNDO),
    "POST /sessions/{session_id}/redo": (*HISTORY, E.NOTHING_TO_REDO),
    "POST /sessions/{session_id}/retry": (*HISTORY, E.NO_PREVIOUS_MESSAGE, *SPENDING),
    "POST /sessions/{session_id}/fork": (*HISTORY, E.TURN_NOT_FOUND, E.LIMIT_EXCEEDED),
    "POST /sessions/{session_id}/clear": HISTORY,
    "POST /sessions/{session_id}/compact": (*HISTORY, *AGENT, E.UNSUPPORTED, E.CONFLICT, *SPENDING),
    "GET /sessions/{session_id}/export": (E.SESSION_BUSY,),
    "POST /sessions/import": (E.UNKNOWN_AGENT, E.WORKSPACE_REFUSED, E.LIMIT_EXCEEDED),
    "GET /search": (E.SESSION_NOT_FOUND,),
    "POST /files": (E.LIMIT_EXCEEDED,),
    "POST /run": (E.UNKNOWN_FILE, *SPENDING, E.RUN_FAILED, E.AGENT_NOT_INSTALLED, *AGENT),
    "POST /sessions/{session_id}/shares": (E.TURN_NOT_FOUND, E.LIMIT_EXCEEDED),
    "POST /webhooks": (E.LIMIT_EXCEEDED,),
    "POST /webhooks/{endpoint_id}/deliveries/{delivery_id}/resend": (E.CONFLICT, E.LIMIT_EXCEEDED),
    "POST /schedules": (*CREATE, E.CONFLICT),
    "PATCH /schedules/{schedule_id}": (E.SESSION_NOT_FOUND, E.SESSION_CLOSED, E.CONFLICT),
    "POST /schedules/{schedule_id}/run": (*CREATE, *TURN, E.CONFLICT, E.POOL_FULL),
    "GET /shared": (E.SHARE_NOT_FOUND,),
    "GET /shared/messages": (E.SHARE_NOT_FOUND,),
    "PUT /budgets": BUDGET,
    "PUT /admin/budgets": (*BUDGET, E.APP_NOT_FOUND),
    "GET /admin/disk": (E.APP_NOT_FOUND,),
    "POST /admin/nodes/{node}/drain": (E.CONFLICT, E.UNSUPPORTED),
    "DELETE /admin/nodes/{node}/drain": (E.UNSUPPORTED,),
    "PUT /personas/{name}": (E.UNKNOWN_AGENT, E.CONFLICT),
    "DELETE /personas/{name}": (E.CONFLICT,),
}
"""The failures of a route's own work, besides those that follow from its shape."""

BY_DIALECT: Final[Mapping[str, tuple[E, ...]]] = {
    "hermes": (
        *(E.SESSION_NOT_FOUND, E.TURN_NOT_FOUND, E.PERMISSION_NOT_FOUND, E.ALREADY_DECIDED),
        *(E.SESSION_CLOSED, E.SESSION_BUSY, E.HEAD_MOVED, E.KEY_REUSED, *SPENDING, E.UNSUPPORTED),
        *(E.NO_PREVIOUS_MESSAGE, E.NOTHING_TO_UNDO, E.UNKNOWN_AGENT, E.WORKSPACE_REFUSED),
    ),
    "openai": (*(E.SESSION_NOT_FOUND, E.TURN_NOT_FOUND, E.CONFLICT, E.POOL_FULL, *CREATE, *TURN, *AGENT),),
}
"""All failures of a dialect whose paths say little, because sessions are named in the query or the body.

What anybody may call is about no session."""


def describe(document: Json, table: Iterable[OpenRoute]) -> Json:
    """FastAPI's document with tokens and failures filled in."""
    components = document.setdefault("components", {})
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    components.setdefault("schemas", {})["ErrorBody"] = ErrorBody.model_json_schema()
    for route in table:
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                _add_failures(operation, route, method)
    return document


def _add_failures(operation: Json, route: OpenRoute, method: str) -> None:
    if route.credential is not None:
        operation["security"] = [{"bearer": []}]
    responses = operation["responses"]
    responses.pop("default", None)
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(_list_codes(operation, route, method)):
        status = OVERRIDES.get(route.dialect, {}).get(code, BY_CODE[code].status)
        by_status.setdefault(status, []).append(code.value)
    for status, codes in sorted(by_status.items()):
        responses[str(status)] = _describe_failure(codes, responses.get(str(status), {}))


def _list_codes(operation: Json, route: OpenRoute, method: str) -> Iterator[E]:
    yield from ANYWHERE
    if route.credential is not None:
        yield from WITH_TOKEN
    if method in BODY_METHODS:
        yield from WITH_BODY
    if route.refuses_unknown:
        yield E.INVALID_REQUEST
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            yield BY_NAME.get(parameter["name"], E.ROUTE_NOT_FOUND)
            if parameter["schema"].get("type") != "string":
                yield E.INVALID_REQUEST
        else:
            yield E.INVALID_REQUEST
            if parameter["in"] == "query" and parameter.get("required"):
                yield E.MISSING_PARAMETER
    yield from BY_ROUTE.get(f"{method} {route.path_format}", ())
    if route.credential is not None:
        yield from BY_DIALECT.get(route.dialect, ())


def _describe_failure(codes: list[str], known: Json) -> Json:
    """Keeps what the route itself declares for a status: readiness answers 503 with its own body."""
    schema: Any = {"$ref": "#/components/schemas/ErrorBody"}
    said = known.get("content", {}).get("application/json", {}).get("schema")
    if said is not None and "HTTPValidationError" not in str(said):
        schema = {"anyOf": [said, schema]}
    return {"description": ", ".join(sorted(codes)), "content": {"application/json": {"schema": schema}}}
