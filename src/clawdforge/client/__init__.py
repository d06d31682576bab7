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
        ForgeAPIError,
        ForgeConnectionError,
        ForgeError,
        ForgeTimeout,
        NoServerKnown,
        StreamBroken,
        UnexpectedReply,
    )
    from clawdforge.client.models import Event, SessionState
    from clawdforge.client.results import RunResult, TurnResult

__all__ = [
    "AsyncForge",
    "AsyncSession",
    "AsyncTurnStream",
    "Event",
    "Forge",
    "ForgeAPIError",
    "ForgeConnectionError",
    "ForgeError",
    "ForgeTimeout",
    "NoServerKnown",
    "RunResult",
    "Session",
    "SessionState",
    "StreamBroken",
    "TurnResult",
    "TurnStream",
    "UnexpectedReply",
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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value
