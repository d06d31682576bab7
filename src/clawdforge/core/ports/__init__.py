"""What core and the surfaces ask of the world: a store, agents, and who calls."""

from clawdforge.core.ports.agents import (
    Agents,
    Capability,
    Catalog,
    Driver,
    FolderSizes,
    Homes,
    LiveAgent,
    Sink,
    Snapshots,
    Workspaces,
)
from clawdforge.core.ports.callers import Callers, Standing
from clawdforge.core.ports.pages import Shown
from clawdforge.core.ports.store import (
    LeaseLost,
    Store,
    Tx,
    View,
)
from clawdforge.core.ports.system import SystemTx, SystemView

__all__ = [
    "Agents",
    "Callers",
    "Capability",
    "Catalog",
    "Driver",
    "FolderSizes",
    "Homes",
    "LeaseLost",
    "LiveAgent",
    "Shown",
    "Sink",
    "Snapshots",
    "Standing",
    "Store",
    "SystemTx",
    "SystemView",
    "Tx",
    "View",
    "Workspaces",
]
