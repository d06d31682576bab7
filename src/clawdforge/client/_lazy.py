"""What the client imports at its first use: the HTTP library with a call, the models with a reply.

Together they are nine tenths of what `from clawdforge import Forge` would take. The names are modules, looked
up when they are first used (PEP 562); `lazy.turn` is `clawdforge.wire.turn`.
"""

from importlib import import_module

TYPE_CHECKING = False  # as type checkers understand it, without the import
if TYPE_CHECKING:
    import httpx2

    from clawdforge.client import _background as background
    from clawdforge.wire import (
        admin,
        browser,
        budgets,
        changes,
        disk,
        event,
        event_kinds,
        message,
        nodes,
        pauses,
        schedules,
        session,
        shares,
        tree,
        turn,
        turn_changes,
        usage,
        webhooks,
    )

__all__ = [
    "admin",
    "background",
    "browser",
    "budgets",
    "changes",
    "disk",
    "event",
    "event_kinds",
    "httpx2",
    "message",
    "nodes",
    "pauses",
    "schedules",
    "session",
    "shares",
    "tree",
    "turn",
    "turn_changes",
    "usage",
    "webhooks",
]

_HOMES = {"httpx2": "httpx2", "background": "clawdforge.client._background"}


def import_for_an_answer() -> None:
    """What a first answer needs, where there is time before it."""
    for name in ("httpx2", "session", "turn", "event_kinds"):
        __getattr__(name)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_HOMES.get(name, f"clawdforge.wire.{name}"))
    globals()[name] = module
    return module
