"""Every failure that a caller can be told of, once for server and client: code, status, text, retry rule.

    ForgeError
    └─ ForgeAPIError        the server refused or failed
       ├─ InvalidRequest    InvalidJson, MissingParameter, UnsupportedMediaType, BodyTooLarge, FileTooLarge,
       │                    HeadersTooLarge, TooSlow, NotHttp, MethodNotAllowed, UnknownAgent,
       │                    UnknownFile, WorkspaceRefused, Unsupported
       ├─ Unauthenticated
       ├─ Forbidden         HostRefused, OriginRefused
       ├─ NotFound          RouteNotFound, SessionNotFound, TurnNotFound, PermissionNotFound, FileNotFound,
       │                    PersonaNotFound, AppNotFound, TokenNotFound, BudgetNotFound, ShareNotFound
       ├─ Conflict          SessionClosed, SessionBusy, KeyReused, HeadMoved, TurnNotQueued, AlreadyDecided,
       │                    WorkspaceChanged, NowhereToRun, NoPreviousMessage, NothingToUndo, NothingToRedo
       ├─ Unavailable       PoolFull, ServerBusy, LimitExceeded, Paused, BudgetExceeded, StoreUnavailable,
       │                    Stopping; they stand in `unavailable_errors`
       ├─ AgentError        AgentNotInstalled, AgentStartFailed, AgentAuthRequired, TurnTimedOut,
       │  │                 TurnInterrupted, RunFailed; they stand in `agent_errors`
       │  └─ AgentFailed    ModelOverloaded, ModelRateLimited, ModelNoCredit, ModelRefused, ContextTooLong
       └─ InternalError

The docstring of a class is its default message. A service raises one; http answers with its status and
body; the client reads the body back into the same class. Cancelled turns and refused permissions are
outcomes, not errors. Another app's id raises the same error, with the same words, as an unknown one.
"""

from typing import Final

from clawdforge.wire.agent_errors import (
    AgentAuthRequired,
    AgentError,
    AgentFailed,
    AgentLost,
    AgentNotInstalled,
    AgentStartFailed,
    ContextTooLong,
    ModelNoCredit,
    ModelOverloaded,
    ModelRateLimited,
    ModelRefused,
    RunFailed,
    TurnInterrupted,
    TurnTimedOut,
)
from clawdforge.wire.error_base import ForgeAPIError, ForgeError
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.unavailable_errors import (
    BudgetExceeded,
    LimitExceeded,
    Paused,
    PoolFull,
    ServerBusy,
    Stopping,
    StoreUnavailable,
    Unavailable,
)

__all__ = [
    "AgentAuthRequired",
    "AgentError",
    "AgentFailed",
    "AgentLost",
    "AgentNotInstalled",
    "AgentStartFailed",
    "BudgetExceeded",
    "ContextTooLong",
    "ForgeAPIError",
    "ForgeError",
    "LimitExceeded",
    "ModelNoCredit",
    "ModelOverloaded",
    "ModelRateLimited",
    "ModelRefused",
    "Paused",
    "PoolFull",
    "RunFailed",
    "ServerBusy",
    "Stopping",
    "StoreUnavailable",
    "TurnInterrupted",
    "TurnTimedOut",
    "Unavailable",
]


class InvalidRequest(ForgeAPIError):
    """the request is not valid"""

    code = ErrorCode.INVALID_REQUEST
    status = 422


class InvalidJson(InvalidRequest):
    """the body is not valid JSON"""

    code = ErrorCode.INVALID_JSON
    status = 400


class MissingParameter(InvalidRequest):
    """a parameter is missing"""

    code = ErrorCode.MISSING_PARAMETER
    status = 400


class UnsupportedMediaType(InvalidRequest):
    """the body must be JSON; send Content-Type: application/json"""

    code = ErrorCode.UNSUPPORTED_MEDIA_TYPE
    status = 415


class BodyTooLarge(InvalidRequest):
    """the body is too large; the limit is CLAWDFORGE_MAX_BODY_BYTES"""

    code = ErrorCode.BODY_TOO_LARGE
    status = 413


class FileTooLarge(BodyTooLarge):
    """the file is too large; the limit is CLAWDFORGE_MAX_FILE_BYTES"""


class HeadersTooLarge(InvalidRequest):
    """the headers are too large or too many; send less than 64 KiB and 128 of them"""

    code = ErrorCode.HEADERS_TOO_LARGE
    status = 431


class TooSlow(InvalidRequest):
    """the request did not arrive in time and was given up; send it again"""

    code = ErrorCode.TOO_SLOW
    status = 408


class NotHttp(InvalidRequest):
    """this is not a valid HTTP request"""

    status = 400


class MethodNotAllowed(InvalidRequest):
    """this route does not take that method; the Allow header lists those that it takes"""

    code = ErrorCode.METHOD_NOT_ALLOWED
    status = 405


class UnknownAgent(InvalidRequest):
    """No such agent; GET /agents lists those that can be used."""

    code = ErrorCode.UNKNOWN_AGENT
    status = 400


class UnknownFile(InvalidRequest):
    """No such file token; upload the file first with POST /files."""

    code = ErrorCode.UNKNOWN_FILE
    status = 400


class WorkspaceRefused(InvalidRequest):
    """This working directory is outside of what this app may use; name one that the operator granted."""

    code = ErrorCode.WORKSPACE_REFUSED
    status = 400


class Unsupported(InvalidRequest):
    """This agent cannot do that."""

    code = ErrorCode.UNSUPPORTED
    status = 501


class Unauthenticated(ForgeAPIError):
    """a valid bearer token is required"""

    code = ErrorCode.UNAUTHENTICATED
    status = 401


class Forbidden(ForgeAPIError):
    """this token may not do that"""

    code = ErrorCode.FORBIDDEN
    status = 403


class HostRefused(Forbidden):
    """this Host is not served here; add it to CLAWDFORGE_ALLOWED_HOSTS"""

    code = ErrorCode.HOST_REFUSED
    status = 421


class OriginRefused(Forbidden):
    """cross-origin requests, from web pages of another origin, are refused"""

    code = ErrorCode.ORIGIN_REFUSED
    status = 403


class NotFound(ForgeAPIError):
    """not found"""

    status = 404


class RouteNotFound(NotFound):
    """no such route; GET /openapi.json lists them"""

    code = ErrorCode.ROUTE_NOT_FOUND


class SessionNotFound(NotFound):
    """session not found"""

    code = ErrorCode.SESSION_NOT_FOUND


class TurnNotFound(NotFound):
    """turn not found"""

    code = ErrorCode.TURN_NOT_FOUND


class PermissionNotFound(NotFound):
    """permission request not found"""

    code = ErrorCode.PERMISSION_NOT_FOUND


class FileNotFound(NotFound):
    """file not found"""

    code = ErrorCode.FILE_NOT_FOUND


class PersonaNotFound(NotFound):
    """persona not found"""

    code = ErrorCode.PERSONA_NOT_FOUND


class AppNotFound(NotFound):
    """app not found"""

    code = ErrorCode.APP_NOT_FOUND


class TokenNotFound(NotFound):
    """token not found"""

    code = ErrorCode.TOKEN_NOT_FOUND


class NodeNotFound(NotFound):
    """no server with this id lives; GET /admin/nodes lists those that do"""

    code = ErrorCode.NODE_NOT_FOUND


class ShareNotFound(NotFound):
    """there is nothing behind this link: it was revoked, has expired, or never was"""

    code = ErrorCode.SHARE_NOT_FOUND


class WebhookNotFound(NotFound):
    """webhook not found"""

    code = ErrorCode.WEBHOOK_NOT_FOUND


class DeliveryNotFound(NotFound):
    """delivery not found; those that were made long ago are removed"""

    code = ErrorCode.DELIVERY_NOT_FOUND


class ScheduleNotFound(NotFound):
    """schedule not found"""

    code = ErrorCode.SCHEDULE_NOT_FOUND


class BudgetNotFound(NotFound):
    """budget not found"""

    code = ErrorCode.BUDGET_NOT_FOUND


class Conflict(ForgeAPIError):
    """the session is not in a state that allows this"""

    code = ErrorCode.CONFLICT
    status = 409


class SessionClosed(Conflict):
    """session has ended; reopen it with POST /sessions/{id}/reopen or create a new one"""

    code = ErrorCode.SESSION_CLOSED
    status = 410


class SessionBusy(Conflict):
    """a turn is running in this session"""

    code = ErrorCode.SESSION_BUSY


class KeyReused(Conflict):
    """this Idempotency-Key was used with another body"""

    code = ErrorCode.KEY_REUSED


class HeadMoved(Conflict):
    """the session has moved on since expected_head; read its state and try again"""

    code = ErrorCode.HEAD_MOVED


class TurnNotQueued(Conflict):
    """this turn is no longer in the queue"""

    code = ErrorCode.TURN_NOT_QUEUED


class AlreadyDecided(Conflict):
    """this permission request has been decided already"""

    code = ErrorCode.ALREADY_DECIDED


class WorkspaceChanged(Conflict):
    """the session's folder is not the one it was made in; put it back, or start a new session"""

    code = ErrorCode.WORKSPACE_CHANGED


class NowhereToRun(Conflict):
    """no server that lives can run this session; `clawdforge nodes` shows them"""

    code = ErrorCode.NOWHERE_TO_RUN


class SessionDamaged(Conflict):
    """what is stored of this session is damaged, others are sound; `clawdforge doctor` says more"""

    code = ErrorCode.SESSION_DAMAGED


class NoPreviousMessage(Conflict):
    """no previous message to retry"""

    code = ErrorCode.NO_PREVIOUS_MESSAGE


class NothingToUndo(Conflict):
    """nothing to undo"""

    code = ErrorCode.NOTHING_TO_UNDO


class NothingToRedo(Conflict):
    """nothing to redo"""

    code = ErrorCode.NOTHING_TO_REDO


class RequestTimedOut(ForgeAPIError):
    """this took too long and was given up; what it has done stays, so read the state before you try again"""

    code = ErrorCode.REQUEST_TIMED_OUT
    status = 504


class InternalError(ForgeAPIError):
    """something went wrong inside the server; its log has the X-Request-Id of this answer"""

    code = ErrorCode.INTERNAL


def _by_code(kind: type[ForgeAPIError]) -> dict[str, type[ForgeAPIError]]:
    own = {str(kind.code): kind} if "code" in vars(kind) else {}
    return own | {code: found for sub in kind.__subclasses__() for code, found in _by_code(sub).items()}


BY_CODE: Final = {code: kind for code, kind in _by_code(ForgeAPIError).items() if kind is not ForgeAPIError}
"""The class of every code."""
