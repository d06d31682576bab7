"""A session server for AI agents, and this: the light client to talk to one.

    from clawdforge import Forge

    with Forge() as forge, forge.session(agent="claude") as session:
        print(session.turn("Say hello.").text())

Names are looked up when they are first used (PEP 562). The server, the command line and the scripted
agent pass through this file too, and must not pay for an HTTP client that they do not need.
"""

from importlib import import_module

TYPE_CHECKING = False  # as type checkers understand it; `typing` alone would be most of what this file costs
if TYPE_CHECKING:
    from clawdforge.client import (
        AsyncForge,
        AsyncSession,
        Event,
        Forge,
        Session,
        TurnResult,
    )
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

__version__ = "0.3.0"

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
    "ServerNotStarted",
    "Session",
    "SessionBusy",
    "SessionClosed",
    "SessionNotFound",
    "ShareNotFound",
    "Stopping",
    "StoreUnavailable",
    "StreamBroken",
    "TokenNotFound",
    "TurnInterrupted",
    "TurnNotFound",
    "TurnNotQueued",
    "TurnResult",
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
    "__version__",
]


if not TYPE_CHECKING:  # a checker that saw it would take any name

    def __getattr__(name: str) -> object:
        if name in __all__:
            value = getattr(import_module("clawdforge.client"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
