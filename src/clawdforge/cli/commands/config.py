"""`clawdforge config show`: the settings in effect, and where those of the command line come from."""

import json
import os
from pathlib import Path
from typing import Any, Final

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.tables import align, size
from clawdforge.cli.target.defaults import read_origins
from clawdforge.cli.target.options import Target, target_options
from clawdforge.cli.target.project import project_folder
from clawdforge.settings import CONFIG_FILE, BadSettings, Settings, list_settings, load_settings
from clawdforge.wire.local import config_file_default

MINUTE: Final = 60
UNITS: Final = (("d", 24 * 60 * MINUTE), ("h", 60 * MINUTE), ("min", MINUTE))
SECRET: Final = "(set; not shown)"  # noqa: S105 - shown in place of a secret


@click.group()
def config() -> None:
    """Show the settings."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def show(target: Target, /, *, as_json: bool) -> None:
    """Print the settings that a server started here would have, and those of the command line.

    A mark shows what differs from its default. Secrets are not printed.
    """
    try:
        settings = load_settings(os.environ, flags={"data_dir": target.data_dir})
    except BadSettings as error:
        raise Failure(str(error), Exit.USAGE) from None
    values = {row.key: _read_value(settings, row.key) for row in list_settings()}
    own = read_origins(os.environ, project_folder())
    files = {
        str(path): path.is_file() for path in (config_file_default(os.environ), Path(CONFIG_FILE).absolute())
    }
    if as_json:
        cli = {key: value for key, (value, _) in own.items()}
        click.echo(json.dumps({"settings": values, "cli": cli, "files": files}, indent=2))
        return
    changed = {row.key for row in list_settings() if values[row.key] != _read_default(row.key)}
    rows = [
        ("* " if key in changed else "  ", key, format_value(key, value)) for key, value in values.items()
    ]
    lines = ["settings of the server", *align(rows, colour=False), "", "agents"]
    lines += [f"  {name}  {' '.join(agent.command or ())}" for name, agent in settings.agents.items()]
    lines += ["  (built-in ones only)"] * (not settings.agents)
    lines += ["", "MCP servers"] * bool(settings.mcp_servers)
    lines += [f"  {name}" for name in settings.mcp_servers]
    lines += ["", "new sessions of the command line ([cli])"]
    lines += [f"  {key}  {value}  ({where})" for key, (value, where) in own.items()] or ["  (nothing set)"]
    lines += ["", "files", *(f"  {path}{'' if there else '  (not there)'}" for path, there in files.items())]
    click.echo("\n".join(lines))


def _read_value(settings: Settings, key: str) -> Any:
    value = settings.model_dump(mode="json", include={key})[key]
    return SECRET if not Settings.model_fields[key].repr and value else value


def _read_default(key: str) -> Any:
    return Settings().model_dump(mode="json", include={key})[key]


def format_value(key: str, value: Any) -> str:
    """As a person reads it: `33554432 (32 MiB)`, `3600 (1 h)`; the number is what a setting takes."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return str(value)
    if key.endswith("_bytes"):
        return f"{value} ({size(int(value))})"
    if key.endswith("_secs") or key == "idle_exit":
        return f"{value:.15g} s" if value < MINUTE else f"{value:.15g} s ({_format_secs(value)})"
    return str(value)


def _format_secs(seconds: float) -> str:
    """In the largest unit that it fills: `90 min` is said, not `1.5 h`."""
    for name, length in UNITS:
        if seconds % length == 0:
            return f"{seconds / length:g} {name}"
    return f"{seconds / MINUTE:.1f} min"
