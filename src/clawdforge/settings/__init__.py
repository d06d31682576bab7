"""The server's settings: one table of names, types and defaults, read once and never changed."""

from clawdforge.settings.addresses import is_loopback
from clawdforge.settings.kinds import Sandbox
from clawdforge.settings.listing import PREFIX, Row, list_settings
from clawdforge.settings.model import ADMIN_TOKEN_FILE, Settings
from clawdforge.settings.secret import keep_secret
from clawdforge.settings.sources import CONFIG_FILE, BadSettings, load_settings, unknown_variables
from clawdforge.settings.tables import AgentSettings

__all__ = [
    "ADMIN_TOKEN_FILE",
    "CONFIG_FILE",
    "PREFIX",
    "AgentSettings",
    "BadSettings",
    "Row",
    "Sandbox",
    "Settings",
    "is_loopback",
    "keep_secret",
    "list_settings",
    "load_settings",
    "unknown_variables",
]
