"""Stable words for failures, one for each kind that a caller can meet."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """`wire/errors.py` has the class of each, with its status and its text."""

    INVALID_JSON = "invalid_json"
    INVALID_REQUEST = "invalid_request"
    MISSING_PARAMETER = "missing_parameter"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    BODY_TOO_LARGE = "body_too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    TOO_SLOW = "too_slow"
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
    BUDGET_NOT_FOUND = "budget_not_found"
    SHARE_NOT_FOUND = "share_not_found"
    UNKNOWN_AGENT = "unknown_agent"
    UNKNOWN_FILE = "unknown_file"
    WORKSPACE_REFUSED = "workspace_refused"
    WORKSPACE_CHANGED = "workspace_changed"

    SESSION_CLOSED = "session_closed"
    SESSION_DAMAGED = "session_damaged"
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
    SERVER_BUSY = "server_busy"
    LIMIT_EXCEEDED = "limit_exceeded"
    PAUSED = "paused"
    BUDGET_EXCEEDED = "budget_exceeded"
    STORE_UNAVAILABLE = "store_unavailable"
    STOPPING = "stopping"

    AGENT_NOT_INSTALLED = "agent_not_installed"
    AGENT_START_FAILED = "agent_start_failed"
    AGENT_AUTH_REQUIRED = "agent_auth_required"
    AGENT_FAILED = "agent_failed"
    TURN_TIMED_OUT = "turn_timed_out"
    TURN_INTERRUPTED = "turn_interrupted"
    RUN_FAILED = "run_failed"

    REQUEST_TIMED_OUT = "request_timed_out"
    INTERNAL = "internal"
