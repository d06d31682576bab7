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
        ForgeAPIError,
        ForgeConnectionError,
        ForgeError,
        ForgeTimeout,
        Session,
        StreamBroken,
        TurnResult,
    )

__version__ = "0.3.0"

__all__ = [
    "AsyncForge",
    "AsyncSession",
    "Event",
    "Forge",
    "ForgeAPIError",
    "ForgeConnectionError",
    "ForgeError",
    "ForgeTimeout",
    "Session",
    "StreamBroken",
    "TurnResult",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        value = getattr(import_module("clawdforge.client"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
