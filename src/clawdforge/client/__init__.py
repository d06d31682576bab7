"""The SDK: `Forge` blocks, `AsyncForge` awaits; the rest is what they hand out and what they raise.

Names are looked up when they are first used (PEP 562): whoever blocks does not pay for asyncio.
"""

from importlib import import_module

TYPE_CHECKING = False  # as type checkers understand it, without the import
if TYPE_CHECKING:
    from clawdforge.client._async.forge import AsyncForge
    from clawdforge.client._async.session import AsyncSession
    from clawdforge.client._async.stream import AsyncTurnStream
    from clawdforge.client._sync.forge import Forge
    from clawdforge.client._sync.session import Session
    from clawdforge.client._sync.stream import TurnStream
    from clawdforge.client.errors import (
        AgentAuthRequired,
        AgentError,
        AgentFailed,
        AgentNotInstalled,
        AgentStartFailed,
        AlreadyDecided,
        AppNotFound,
        BodyTooLarge,
        BudgetExceeded,
        BudgetNotFound,
        Conflict,
        FileNotFound,
        FileTooLarge,
        Forbidden,
        ForgeAPIError,
        ForgeConnectionError,
        ForgeError,
        ForgeTimeout,
        HeadMoved,
        HostRefused,
        InternalError,
        InvalidJson,
        InvalidRequest,
        KeyReused,
        LimitExceeded,
        MethodNotAllowed,
        MissingParameter,
        NoPreviousMessage,
        NoServerKnown,
        NotFound,
        NothingToRedo,
        NothingToUndo,
        OriginRefused,
        Paused,
        PermissionNotFound,
        PersonaNotFound,
        PoolFull,
        RouteNotFound,
        RunFailed,
        ServerNotStarted,
        SessionBusy,
        SessionClosed,
        SessionNotFound,
        ShareNotFound,
        Stopping,
        StoreUnavailable,
        StreamBroken,
        TokenNotFound,
        TurnInterrupted,
        TurnNotFound,
        TurnNotQueued,
        TurnTimedOut,
        Unauthenticated,
        Unavailable,
        UnexpectedReply,
        UnknownAgent,
        UnknownFile,
        Unsupported,
        UnsupportedMediaType,
        WorkspaceChanged,
        WorkspaceRefused,
    )
    from clawdforge.client.models import Event, SessionState
    from clawdforge.client.results import RunResult, TurnResult

__all__ = [
    "AgentAuthRequired",
    "AgentError",
    "AgentFailed",
    "AgentNotInstalled",
    "AgentStartFailed",
    "AlreadyDecided",
    "AppNotFound",
    "AsyncForge",
    "AsyncSession",
    "AsyncTurnStream",
    "BodyTooLarge",
    "BudgetExceeded",
    "BudgetNotFound",
    "Conflict",
    "Event",
    "FileNotFound",
    "FileTooLarge",
    "Forbidden",
    "Forge",
    "ForgeAPIError",
    "ForgeConnectionError",
    "ForgeError",
    "ForgeTimeout",
    "HeadMoved",
    "HostRefused",
    "InternalError",
    "InvalidJson",
    "InvalidRequest",
    "KeyReused",
    "LimitExceeded",
    "MethodNotAllowed",
    "MissingParameter",
    "NoPreviousMessage",
    "NoServerKnown",
    "NotFound",
    "NothingToRedo",
    "NothingToUndo",
    "OriginRefused",
    "Paused",
    "PermissionNotFound",
    "PersonaNotFound",
    "PoolFull",
    "RouteNotFound",
    "RunFailed",
    "RunResult",
    "ServerNotStarted",
    "Session",
    "SessionBusy",
    "SessionClosed",
    "SessionNotFound",
    "SessionState",
    "ShareNotFound",
    "Stopping",
    "StoreUnavailable",
    "StreamBroken",
    "TokenNotFound",
    "TurnInterrupted",
    "TurnNotFound",
    "TurnNotQueued",
    "TurnResult",
    "TurnStream",
    "TurnTimedOut",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedReply",
    "UnknownAgent",
    "UnknownFile",
    "Unsupported",
    "UnsupportedMediaType",
    "WorkspaceChanged",
    "WorkspaceRefused",
]

_HOMES = {
    "AsyncForge": "_async.forge",
    "AsyncSession": "_async.session",
    "AsyncTurnStream": "_async.stream",
    "Forge": "_sync.forge",
    "Session": "_sync.session",
    "TurnStream": "_sync.stream",
    "Event": "models",
    "RunResult": "results",
    "SessionState": "models",
    "TurnResult": "results",
}


if not TYPE_CHECKING:  # a checker that saw it would take any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
        globals()[name] = value
        return value
