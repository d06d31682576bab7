"""Every failure that a service raises; http gives each code a status, the client a class.

    ForgeError
    ├─ InvalidRequest       ├─ UnknownAgent  ├─ UnknownFile  ├─ FileTooLarge  ├─ WorkspaceRefused
    │                       └─ Unsupported
    ├─ Unauthenticated      └─ Forbidden
    ├─ NotFound             ├─ SessionNotFound ├─ TurnNotFound ├─ PermissionNotFound
    │                       ├─ FileNotFound ├─ PersonaNotFound ├─ AppNotFound └─ TokenNotFound
    ├─ Conflict             ├─ SessionClosed ├─ SessionBusy ├─ KeyReused ├─ HeadMoved
    │                       ├─ TurnNotQueued ├─ AlreadyDecided ├─ NoPreviousMessage
    │                       └─ NothingToUndo, NothingToRedo
    ├─ Unavailable          ├─ PoolFull ├─ LimitExceeded ├─ StoreUnavailable └─ Stopping
    ├─ AgentError           ├─ AgentNotInstalled ├─ AgentStartFailed ├─ AgentAuthRequired
    │                       └─ AgentFailed, TurnTimedOut, TurnInterrupted, RunFailed
    └─ LeaseLost            never leaves the process

The docstring of a class is its default message. Cancelled turns and refused permissions are outcomes,
not errors. Another app's id raises the same error, with the same words, as an unknown one.
"""

from typing import ClassVar

from clawdforge.wire.base import Json
from clawdforge.wire.error import ErrorCode


class ForgeError(Exception):
    """Something went wrong inside the server."""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL

    def __init__(
        self, message: str | None = None, *, retry_after: float | None = None, **extra: object
    ) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.retry_after = retry_after
        self.extra: Json = extra
        super().__init__(self.message)


class InvalidRequest(ForgeError):
    """The request is not valid."""

    code = ErrorCode.INVALID_REQUEST


class UnknownAgent(InvalidRequest):
    """No such agent; GET /agents lists those that can be used."""

    code = ErrorCode.UNKNOWN_AGENT


class UnknownFile(InvalidRequest):
    """No such file token; upload the file first with POST /files."""

    code = ErrorCode.UNKNOWN_FILE


class FileTooLarge(InvalidRequest):
    """the file is too large; the limit is CLAWDFORGE_MAX_FILE_BYTES"""

    code = ErrorCode.BODY_TOO_LARGE


class WorkspaceRefused(InvalidRequest):
    """This working directory may not be used; name one inside CLAWDFORGE_WORKSPACE_ROOTS."""

    code = ErrorCode.WORKSPACE_REFUSED


class Unsupported(InvalidRequest):
    """This agent cannot do that."""

    code = ErrorCode.UNSUPPORTED


class Unauthenticated(ForgeError):
    """a valid bearer token is required"""

    code = ErrorCode.UNAUTHENTICATED


class Forbidden(ForgeError):
    """this token may not do that"""

    code = ErrorCode.FORBIDDEN


class NotFound(ForgeError):
    """not found"""

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


class Conflict(ForgeError):
    """the session is not in a state that allows this"""

    code = ErrorCode.CONFLICT


class SessionClosed(Conflict):
    """session has ended; reopen it with POST /sessions/{id}/reopen or create a new one"""

    code = ErrorCode.SESSION_CLOSED


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


class NoPreviousMessage(Conflict):
    """no previous message to retry"""

    code = ErrorCode.NO_PREVIOUS_MESSAGE


class NothingToUndo(Conflict):
    """nothing to undo"""

    code = ErrorCode.NOTHING_TO_UNDO


class NothingToRedo(Conflict):
    """nothing to redo"""

    code = ErrorCode.NOTHING_TO_REDO


class Unavailable(ForgeError):
    """not possible right now; try again later"""

    code = ErrorCode.STOPPING


class PoolFull(Unavailable):
    """too many open sessions; close one or raise CLAWDFORGE_MAX_LIVE_SESSIONS"""

    code = ErrorCode.POOL_FULL


class LimitExceeded(Unavailable):
    """this app has reached its limit; try again later"""

    code = ErrorCode.LIMIT_EXCEEDED


class StoreUnavailable(Unavailable):
    """the store cannot be written; the outcome is unknown, retry with the same Idempotency-Key"""

    code = ErrorCode.STORE_UNAVAILABLE


class Stopping(Unavailable):
    """the server is stopping; try again when it is back"""

    code = ErrorCode.STOPPING


class AgentError(ForgeError):
    """the agent failed"""

    code = ErrorCode.AGENT_FAILED


class AgentNotInstalled(AgentError):
    """the agent's program is not installed"""

    code = ErrorCode.AGENT_NOT_INSTALLED


class AgentStartFailed(AgentError):
    """the agent did not start"""

    code = ErrorCode.AGENT_START_FAILED


class AgentAuthRequired(AgentError):
    """the agent wants a login; give it a token in the server's environment"""

    code = ErrorCode.AGENT_AUTH_REQUIRED


class AgentFailed(AgentError):
    """the agent failed; the session stays usable"""

    code = ErrorCode.AGENT_FAILED


class TurnTimedOut(AgentError):
    """the turn took longer than its time limit and was ended; the session stays usable"""

    code = ErrorCode.TURN_TIMED_OUT


class TurnInterrupted(AgentError):
    """the turn was cut off; what was said so far is kept"""

    code = ErrorCode.TURN_INTERRUPTED


class RunFailed(AgentError):
    """the run failed"""

    code = ErrorCode.RUN_FAILED


class LeaseLost(ForgeError):
    """another node holds this session now"""
