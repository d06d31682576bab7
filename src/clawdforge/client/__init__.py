"""The SDK: `Forge` blocks, `AsyncForge` awaits; the rest is what they hand out and what they raise."""

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
from clawdforge.client.models import Event, RunResult, TurnResult

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
    "StreamBroken",
    "TurnResult",
    "TurnStream",
    "UnexpectedReply",
]
