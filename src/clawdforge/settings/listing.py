"""The settings as a table, as the reference and `config show` print it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic import ByteSize

from clawdforge.settings.model import Settings

PREFIX: Final = "CLAWDFORGE_"
TABLES: Final = ("agents", "mcp_servers")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of settings, as the reference and `config show` print it."""

    variable: str
    key: str
    type: str
    default: str
    about: str


def list_settings() -> Iterator[Row]:
    """Every setting except the tables, which have no fixed names, in the order of the reference."""
    for key, field in Settings.model_fields.items():
        if key not in TABLES:
            about = field.description or ""
            yield Row(
                PREFIX + key.upper(), key, _TYPES.get(key) or _type_name(key), _default_text(key), about
            )


_TYPES: Final = {
    "allowed_hosts": "names, comma",
    "workspace_roots": "paths, `:`",
    "data_dir": "path",
    "sandbox": "auto, full, off",
    "agent_network": "open, none, proxy",
    "agent_hosts": "hosts, comma",
    "log_level": "debug, info, warning, error",
    "idle_exit": "seconds",
    "otel_headers": "`name=value`, comma",
}


def _type_name(key: str) -> str:
    if key.endswith("_secs"):
        return "seconds"
    if key.endswith("_bytes"):
        return "size, such as 32MiB"
    kind = Settings.model_fields[key].annotation
    return {int: "number", bool: "true or false"}.get(kind, "text") if isinstance(kind, type) else "text"


def _default_text(key: str) -> str:
    if key == "data_dir":
        return "`$XDG_DATA_HOME/clawdforge`, else `~/.local/share/clawdforge`"
    value = Settings.model_fields[key].get_default(call_default_factory=True)
    if value in (None, (), "", {}):
        return "none"
    if isinstance(value, ByteSize):
        return value.human_readable()
    if isinstance(value, tuple):
        return os.pathsep.join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)
