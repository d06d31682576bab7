"""Every way a call can fail: one code each, and the one body that carries it on every path."""

from enum import StrEnum
from typing import Literal

from clawdforge.wire.base import Json, Reply


class ErrorCode(StrEnum):
    """Stable words for failures; http maps each to a status, the client to an exception class."""

    INVALID_JSON = "invalid_json"
    INVALID_REQUEST = "invalid_request"
    MISSING_PARAMETER = "missing_parameter"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    BODY_TOO_LARGE = "body_too_large"
    ROUTE_NOT_FOUND = "route_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    UNSUPPORTED = "unsupported"

    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    HOST_REFUSED = "host_refused"
    ORIGIN_REFUSED = "origin_refused"

    SESSION_NOT_FOUND = "session_not_found"
    TURN_NOT_FOUND = "turn_not_found"
    PERMISSION_NOT_FOUND = "permission_not_found"
    FILE_NOT_FOUND = "file_not_found"
    PERSONA_NOT_FOUND = "persona_not_found"
    APP_NOT_FOUND = "app_not_found"
    TOKEN_NOT_FOUND = "token_not_found"  # noqa: S105 - a code, not a secret
    UNKNOWN_AGENT = "unknown_agent"
    UNKNOWN_FILE = "unknown_file"
    WORKSPACE_REFUSED = "workspace_refused"

    SESSION_CLOSED = "session_closed"
    SESSION_BUSY = "session_busy"
    KEY_REUSED = "key_reused"
    HEAD_MOVED = "head_moved"
    TURN_NOT_QUEUED = "turn_not_queued"
    ALREADY_DECIDED = "already_decided"
    NO_PREVIOUS_MESSAGE = "no_previous_message"
    NOTHING_TO_UNDO = "nothing_to_undo"
    NOTHING_TO_REDO = "nothing_to_redo"
    CONFLICT = "conflict"

    POOL_FULL = "pool_full"
    LIMIT_EXCEEDED = "limit_exceeded"
    STORE_UNAVAILABLE = "store_unavailable"
    STOPPING = "stopping"

    AGENT_NOT_INSTALLED = "agent_not_installed"
    AGENT_START_FAILED = "agent_start_failed"
    AGENT_AUTH_REQUIRED = "agent_auth_required"
    AGENT_FAILED = "agent_failed"
    TURN_TIMED_OUT = "turn_timed_out"
    TURN_INTERRUPTED = "turn_interrupted"
    RUN_FAILED = "run_failed"

    INTERNAL = "internal"


class ErrorBody(Reply):
    """`error` and `detail` say the same: callers of three old programs look in different places."""

    ok: Literal[False] = False
    error: str
    detail: str
    code: str


def error_body(code: ErrorCode, message: str, extra: Json | None = None) -> Json:
    """The body of a failure; `extra` holds the keys that one path adds, such as `active_stream_id`."""
    return {"ok": False, "error": message, "detail": message, "code": code.value, **(extra or {})}
