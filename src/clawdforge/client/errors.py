"""Every failure that a caller of the SDK can meet: one class per error code, and the tree of them.

    ForgeError
    ├─ ForgeConnectionError      no answer: refused, reset, cut off
    │  └─ ForgeTimeout           no answer in time
    ├─ StreamBroken              a live stream could not be taken up again; has `last_seq`
    ├─ UnexpectedReply           an answer that this client cannot read
    ├─ NoServerKnown             no address or no token to be found; also a ValueError
    └─ ForgeAPIError             the server said no: `status_code`, `code`, `message`, `body`, `request_id`
       ├─ InvalidRequest
       │   ├─ InvalidJson, MissingParameter, UnsupportedMediaType, BodyTooLarge, MethodNotAllowed
       │   └─ Unsupported, UnknownAgent, UnknownFile, WorkspaceRefused
       ├─ Unauthenticated
       ├─ Forbidden
       │   └─ HostRefused, OriginRefused
       ├─ NotFound
       │   ├─ RouteNotFound, SessionNotFound, TurnNotFound, PermissionNotFound, FileNotFound
       │   └─ PersonaNotFound, AppNotFound, TokenNotFound
       ├─ Conflict
       │   ├─ SessionClosed, SessionBusy, KeyReused, HeadMoved, TurnNotQueued, AlreadyDecided
       │   └─ NoPreviousMessage, NothingToUndo, NothingToRedo
       ├─ Unavailable
       │   └─ PoolFull, LimitExceeded, StoreUnavailable, Stopping
       ├─ AgentError
       │   ├─ AgentNotInstalled, AgentStartFailed, AgentAuthRequired, AgentFailed, TurnTimedOut
       │   └─ TurnInterrupted, RunFailed
       └─ InternalError

A code that this client does not know yet, and an answer without one, get the class of their status.
"""

from typing import Any, Final

from clawdforge.wire.error import ErrorCode


class ForgeError(Exception):
    """Anything that this client raises on its own account."""


class ForgeConnectionError(ForgeError):
    """The server could not be reached, or the connection broke before the answer was whole."""


class ForgeTimeout(ForgeConnectionError):
    """No answer in time. The server may still be at work: repeat with the same idempotency key."""


class StreamBroken(ForgeError):
    """A live stream could not be taken up again; continue later with `after=error.last_seq`."""

    def __init__(self, message: str, last_seq: int) -> None:
        super().__init__(message, last_seq)
        self.message = message
        self.last_seq = last_seq

    def __str__(self) -> str:
        return f"{self.message} (last event: {self.last_seq})"


class UnexpectedReply(ForgeError):
    """The server's answer is not what this client can read; one of the two may be too old."""


class NoServerKnown(ForgeError, ValueError):
    """Neither arguments, nor the environment, nor the data folder say where the server is."""


class ForgeAPIError(ForgeError):
    """The server refused or failed."""

    code: str = ""

    def __init__(
        self,
        message: str,
        *,
        status_code: int,
        code: str = "",
        body: Any = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = status_code
        self.code = code or type(self).code
        self.body = body
        self.request_id = request_id

    def __str__(self) -> str:
        words = f"{self.status_code} {self.code}".strip()
        suffix = f" (request {self.request_id})" if self.request_id else ""
        return f"{words}: {self.message}{suffix}"

    def __reduce__(self) -> tuple[Any, ...]:
        return error_from, (self.status_code, self.body, self.request_id, self.message)


class InvalidRequest(ForgeAPIError):
    """The request is not valid."""

    code = ErrorCode.INVALID_REQUEST


class InvalidJson(InvalidRequest):
    """The body is not JSON."""

    code = ErrorCode.INVALID_JSON


class MissingParameter(InvalidRequest):
    """A parameter is missing."""

    code = ErrorCode.MISSING_PARAMETER


class UnsupportedMediaType(InvalidRequest):
    """The body has a content type that this route does not take."""

    code = ErrorCode.UNSUPPORTED_MEDIA_TYPE


class BodyTooLarge(InvalidRequest):
    """The body or the file is larger than the server takes."""

    code = ErrorCode.BODY_TOO_LARGE


class MethodNotAllowed(InvalidRequest):
    """The path is known, this method on it is not."""

    code = ErrorCode.METHOD_NOT_ALLOWED


class Unsupported(InvalidRequest):
    """This agent or this server cannot do that."""

    code = ErrorCode.UNSUPPORTED


class UnknownAgent(InvalidRequest):
    """No such agent; `forge.agents()` lists those that can be used."""

    code = ErrorCode.UNKNOWN_AGENT


class UnknownFile(InvalidRequest):
    """No such file token; upload the file first."""

    code = ErrorCode.UNKNOWN_FILE


class WorkspaceRefused(InvalidRequest):
    """This working directory may not be used."""

    code = ErrorCode.WORKSPACE_REFUSED


class Unauthenticated(ForgeAPIError):
    """The token is missing, unknown, revoked or expired."""

    code = ErrorCode.UNAUTHENTICATED


class Forbidden(ForgeAPIError):
    """The token is good, but not for this."""

    code = ErrorCode.FORBIDDEN


class HostRefused(Forbidden):
    """The server does not answer to this host name."""

    code = ErrorCode.HOST_REFUSED


class OriginRefused(Forbidden):
    """The server does not take requests from this origin."""

    code = ErrorCode.ORIGIN_REFUSED


class NotFound(ForgeAPIError):
    """There is no such thing, or it belongs to another app."""


class RouteNotFound(NotFound):
    """The server has no such path; it may be older than this client."""

    code = ErrorCode.ROUTE_NOT_FOUND


class SessionNotFound(NotFound):
    """There is no such session."""

    code = ErrorCode.SESSION_NOT_FOUND


class TurnNotFound(NotFound):
    """There is no such turn."""

    code = ErrorCode.TURN_NOT_FOUND


class PermissionNotFound(NotFound):
    """There is no such permission request."""

    code = ErrorCode.PERMISSION_NOT_FOUND


class FileNotFound(NotFound):
    """There is no such file."""

    code = ErrorCode.FILE_NOT_FOUND


class PersonaNotFound(NotFound):
    """There is no such persona."""

    code = ErrorCode.PERSONA_NOT_FOUND


class AppNotFound(NotFound):
    """There is no such app."""

    code = ErrorCode.APP_NOT_FOUND


class TokenNotFound(NotFound):
    """There is no such token."""

    code = ErrorCode.TOKEN_NOT_FOUND


class Conflict(ForgeAPIError):
    """The request does not fit the present state."""

    code = ErrorCode.CONFLICT


class SessionClosed(Conflict):
    """The session is closed; `reopen()` opens it again."""

    code = ErrorCode.SESSION_CLOSED


class SessionBusy(Conflict):
    """Another turn is running."""

    code = ErrorCode.SESSION_BUSY


class KeyReused(Conflict):
    """This idempotency key was used with another body."""

    code = ErrorCode.KEY_REUSED


class HeadMoved(Conflict):
    """The session has moved on since `expected_head`."""

    code = ErrorCode.HEAD_MOVED


class TurnNotQueued(Conflict):
    """The turn is not in the queue any more."""

    code = ErrorCode.TURN_NOT_QUEUED


class AlreadyDecided(Conflict):
    """Somebody has decided this request already."""

    code = ErrorCode.ALREADY_DECIDED


class NoPreviousMessage(Conflict):
    """There is no previous message to retry."""

    code = ErrorCode.NO_PREVIOUS_MESSAGE


class NothingToUndo(Conflict):
    """There is nothing to undo."""

    code = ErrorCode.NOTHING_TO_UNDO


class NothingToRedo(Conflict):
    """There is nothing to redo."""

    code = ErrorCode.NOTHING_TO_REDO


class Unavailable(ForgeAPIError):
    """Not now; try again later, with the same idempotency key."""


class PoolFull(Unavailable):
    """The server has as many open sessions as it may have."""

    code = ErrorCode.POOL_FULL


class LimitExceeded(Unavailable):
    """The app has used up what it may use."""

    code = ErrorCode.LIMIT_EXCEEDED


class StoreUnavailable(Unavailable):
    """The store does not answer; the outcome is unknown."""

    code = ErrorCode.STORE_UNAVAILABLE


class Stopping(Unavailable):
    """The server is about to stop."""

    code = ErrorCode.STOPPING


class AgentError(ForgeAPIError):
    """The agent, not the server, is what failed."""


class AgentNotInstalled(AgentError):
    """The agent's program is not there."""

    code = ErrorCode.AGENT_NOT_INSTALLED


class AgentStartFailed(AgentError):
    """The agent's program did not start."""

    code = ErrorCode.AGENT_START_FAILED


class AgentAuthRequired(AgentError):
    """The agent wants its own login first."""

    code = ErrorCode.AGENT_AUTH_REQUIRED


class AgentFailed(AgentError):
    """The agent failed during the turn."""

    code = ErrorCode.AGENT_FAILED


class TurnTimedOut(AgentError):
    """The turn took longer than it may."""

    code = ErrorCode.TURN_TIMED_OUT


class TurnInterrupted(AgentError):
    """The server stopped during the turn; what was said is kept."""

    code = ErrorCode.TURN_INTERRUPTED


class RunFailed(AgentError):
    """The one-shot run failed; `body` has its stderr."""

    code = ErrorCode.RUN_FAILED


class InternalError(ForgeAPIError):
    """Something went wrong inside the server."""

    code = ErrorCode.INTERNAL


def _by_code(kind: type[ForgeAPIError]) -> dict[str, type[ForgeAPIError]]:
    own = {str(kind.code): kind} if vars(kind).get("code") else {}
    return own | {code: found for sub in kind.__subclasses__() for code, found in _by_code(sub).items()}


BY_CODE: Final = _by_code(ForgeAPIError)

_BY_STATUS: Final[dict[int, type[ForgeAPIError]]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: Unavailable,
    503: Unavailable,
}


def error_from(status: int, body: Any, request_id: str | None, fallback: str) -> ForgeAPIError:
    """The right class for an answer; `body` is what its JSON says, `fallback` its text if there is none."""
    known = body if isinstance(body, dict) else {}
    code = str(known.get("code") or "")
    message = next((m for key in ("detail", "error") if isinstance(m := known.get(key), str) and m), fallback)
    kind = BY_CODE.get(code) or _BY_STATUS.get(status, ForgeAPIError)
    return kind(message, status_code=status, code=code, body=body, request_id=request_id)
