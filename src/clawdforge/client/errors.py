"""Every failure that a caller of the SDK can meet: those of the wire, and those of the connection.

    ForgeError
    ├─ ForgeConnectionError      no answer: refused, reset, cut off
    │  └─ ForgeTimeout           no answer in time
    ├─ StreamBroken              a live stream could not be taken up again; has `last_seq`
    ├─ UnexpectedReply           an answer that this client cannot read
    ├─ NoServerKnown             no address or no token to be found; also a ValueError
    │  └─ ServerNotStarted       none runs on this machine, and none could be started
    └─ ForgeAPIError             the server said no: `status_code`, `code`, `message`, `body`, `request_id`

What the server says no with is the tree of `clawdforge.wire.errors`, whose names are here as well.
"""

from typing import Any, Final

from clawdforge.wire.errors import (
    BY_CODE,
    AgentAuthRequired,
    AgentError,
    AgentFailed,
    AgentLost,
    AgentNotInstalled,
    AgentStartFailed,
    AlreadyDecided,
    AppNotFound,
    BodyTooLarge,
    BudgetExceeded,
    BudgetNotFound,
    Conflict,
    ContextTooLong,
    DeliveryNotFound,
    FileNotFound,
    FileTooLarge,
    Forbidden,
    ForgeAPIError,
    ForgeError,
    HeadersTooLarge,
    HeadMoved,
    HostRefused,
    InternalError,
    InvalidJson,
    InvalidRequest,
    KeyReused,
    LimitExceeded,
    MethodNotAllowed,
    MissingParameter,
    ModelNoCredit,
    ModelOverloaded,
    ModelRateLimited,
    ModelRefused,
    NodeNotFound,
    NoPreviousMessage,
    NotFound,
    NothingToRedo,
    NothingToUndo,
    NotHttp,
    NowhereToRun,
    OriginRefused,
    Paused,
    PermissionNotFound,
    PersonaNotFound,
    PoolFull,
    RequestTimedOut,
    RouteNotFound,
    RunFailed,
    ScheduleNotFound,
    ServerBusy,
    SessionBusy,
    SessionClosed,
    SessionDamaged,
    SessionNotFound,
    ShareNotFound,
    Stopping,
    StoreUnavailable,
    TokenNotFound,
    TooSlow,
    TurnInterrupted,
    TurnNotFound,
    TurnNotQueued,
    TurnTimedOut,
    Unauthenticated,
    Unavailable,
    UnknownAgent,
    UnknownFile,
    Unsupported,
    UnsupportedMediaType,
    WebhookNotFound,
    WorkspaceChanged,
    WorkspaceRefused,
)

__all__ = [
    "BY_CODE",
    "AgentAuthRequired",
    "AgentError",
    "AgentFailed",
    "AgentLost",
    "AgentNotInstalled",
    "AgentStartFailed",
    "AlreadyDecided",
    "AppNotFound",
    "BodyTooLarge",
    "BudgetExceeded",
    "BudgetNotFound",
    "Conflict",
    "ContextTooLong",
    "DeliveryNotFound",
    "FileNotFound",
    "FileTooLarge",
    "Forbidden",
    "ForgeAPIError",
    "ForgeConnectionError",
    "ForgeError",
    "ForgeTimeout",
    "HeadMoved",
    "HeadersTooLarge",
    "HostRefused",
    "InternalError",
    "InvalidJson",
    "InvalidRequest",
    "KeyReused",
    "LimitExceeded",
    "MethodNotAllowed",
    "MissingParameter",
    "ModelNoCredit",
    "ModelOverloaded",
    "ModelRateLimited",
    "ModelRefused",
    "NoPreviousMessage",
    "NoServerKnown",
    "NodeNotFound",
    "NotFound",
    "NotHttp",
    "NothingToRedo",
    "NothingToUndo",
    "NowhereToRun",
    "OriginRefused",
    "Paused",
    "PermissionNotFound",
    "PersonaNotFound",
    "PoolFull",
    "RequestTimedOut",
    "RouteNotFound",
    "RunFailed",
    "ScheduleNotFound",
    "ServerBusy",
    "ServerNotStarted",
    "SessionBusy",
    "SessionClosed",
    "SessionDamaged",
    "SessionNotFound",
    "ShareNotFound",
    "Stopping",
    "StoreUnavailable",
    "StreamBroken",
    "TokenNotFound",
    "TooSlow",
    "TurnInterrupted",
    "TurnNotFound",
    "TurnNotQueued",
    "TurnTimedOut",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedReply",
    "UnknownAgent",
    "UnknownFile",
    "Unsupported",
    "UnsupportedMediaType",
    "WebhookNotFound",
    "WorkspaceChanged",
    "WorkspaceRefused",
    "error_from",
]


class ForgeConnectionError(ForgeError):
    """The server could not be reached, or the connection broke before the answer was whole.

    `sent` is False where the request certainly never left: then nothing has happened.
    """

    sent: bool = True


class ForgeTimeout(ForgeConnectionError):
    """No answer in time. The server may still be working on it: repeat with the same idempotency key."""


class StreamBroken(ForgeError):
    """A live stream could not be resumed; continue later with `after=error.last_seq`."""

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


class ServerNotStarted(NoServerKnown):
    """No server runs on the data folder, and none could be started there; the message says why."""


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
    """An answer as the error that it tells of: `body` is its JSON, `fallback` its text if it is none.

    A code that is not known here yet, and an answer without one, get the class of their status.
    """
    known = body if isinstance(body, dict) else {}
    code = str(known.get("code") or "")
    message = next((m for key in ("detail", "error") if isinstance(m := known.get(key), str) and m), fallback)
    kind = BY_CODE.get(code) or _BY_STATUS.get(status, ForgeAPIError)
    return kind(message, status_code=status, code=code, body=body, request_id=request_id)
