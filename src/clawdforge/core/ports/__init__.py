"""What core asks of the world: a store, and agents."""

from clawdforge.core.ports.agents import (
    Agents,
    Capability,
    Catalog,
    Driver,
    Homes,
    LiveAgent,
    Sink,
    Snapshots,
    Workspaces,
)
from clawdforge.core.ports.store import (
    LeaseLost,
    Shown,
    Store,
    SystemTx,
    SystemView,
    Tx,
    View,
)

__all__ = [
    "Agents",
    "Capability",
    "Catalog",
    "Driver",
    "Homes",
    "LeaseLost",
    "LiveAgent",
    "Shown",
    "Sink",
    "Snapshots",
    "Store",
    "SystemTx",
    "SystemView",
    "Tx",
    "View",
    "Workspaces",
]
