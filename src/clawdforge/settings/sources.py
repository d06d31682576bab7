"""Reads the settings from all their sources, and explains what is wrong with bad ones.

Later sources win: defaults, the user's TOML file, the working folder's, `CLAWDFORGE_*` variables, flags.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from clawdforge.settings.listing import PREFIX, TABLES, list_settings
from clawdforge.settings.model import Settings
from clawdforge.wire.local import ENV_TOKEN, ENV_URL, config_file_default, data_dir_default

AGENT_PREFIX: Final = "CLAWDFORGE_AGENT_"
TEST_PREFIX: Final = "CLAWDFORGE_TEST_"
CLI_PREFIX: Final = "CLAWDFORGE_CLI_"
CLI_TABLE: Final = "cli"
"""The table that only the command line reads, in the same files."""

CONFIG_FILE: Final = "clawdforge.toml"
ALIKE: Final = 0.75
NEAR: Final = 0.8  # stricter, since any name may be an agent's
AGENT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class BadSettings(Exception):
    """A setting that cannot be used. The message says which, where it came from and what would be valid."""


def load_settings(
    env: Mapping[str, str], *, config: Path | None = None, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings from all sources.

    Raises BadSettings. A given `config` must exist, and no other file is read.
    """
    found = _Sources({"data_dir": data_dir_default(env)}, {}, {})
    path = config or Path(CONFIG_FILE)
    for file in [config] if config else [config_file_default(env), path]:
        if config is not None or file.is_file():
            found.add_file(file)
    found.add_env(env)
    for key, value in (flags or {}).items():
        if value is not None:
            found.add(key, value, f"--{key.replace('_', '-')}")
    for agent in (name for name in found.agents if not AGENT_NAME.fullmatch(name)):
        raise BadSettings(f"{agent!r} cannot be an agent's name; use lower case letters, digits, . _ and -")
    try:
        return Settings.model_validate({**found.values, "agents": found.agents})
    except ValidationError as error:
        raise BadSettings(_explain(error, found.origin, path)) from None


@dataclass(frozen=True, slots=True)
class _Sources:
    """The raw values so far, where each came from, and the tables of agents."""

    values: dict[str, object]
    origin: dict[str, str]
    agents: dict[str, dict[str, object]]

    def add(self, key: str, value: object, origin: str) -> None:
        self.values[key], self.origin[key] = value, origin

    def add_file(self, path: Path) -> None:
        for key, value in _read_file(path).items():
            if key == "agents":
                self.agents.update(_agent_tables(value, path))
            elif key == "mcp_servers" and isinstance(value, dict):
                before = self.values.get(key)
                self.add(key, {**(before if isinstance(before, dict) else {}), **value}, f"{key} in {path}")
            else:
                self.add(key, value, f"{key} in {path}")

    def add_env(self, env: Mapping[str, str]) -> None:
        # An empty variable counts as unset.
        for name, value in env.items():
            key = name.removeprefix(PREFIX).lower()
            if not name.startswith(PREFIX) or not value or key in TABLES:
                continue
            if key in Settings.model_fields:
                self.add(key, value, name)
            elif name.startswith(AGENT_PREFIX):
                agent = name.removeprefix(AGENT_PREFIX).lower().replace("_", "-")
                self.agents[agent] = {**self.agents.get(agent, {}), "command": value}
                self.origin[f"agents.{agent}"] = name


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """A line about each `CLAWDFORGE_…` variable that the server does not know, or that may be a typo."""
    known = {row.variable for row in list_settings()}
    lines = []
    for name in sorted(env):
        others = (AGENT_PREFIX, TEST_PREFIX, CLI_PREFIX)
        ours = name in known or name in (ENV_URL, ENV_TOKEN) or name.startswith(others)
        if name.startswith(PREFIX) and not ours:
            lines.append(f"{name} is not a setting and has no effect{_suggest(name, known)}")
        elif name.startswith(AGENT_PREFIX) and name not in known and (hint := _suggest_limit(name, known)):
            lines.append(f"{name} adds an agent{hint}")
    return lines


def _read_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise BadSettings(f"cannot read the settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path} is not valid TOML: {error}") from None
    found.pop(CLI_TABLE, None)
    for key in found:
        if key not in Settings.model_fields:
            raise BadSettings(f"{path}: unknown setting {key!r}{_suggest(key, Settings.model_fields)}")
    return found


def _agent_tables(value: object, path: Path) -> dict[str, dict[str, object]]:
    if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
        return value
    raise BadSettings(f'{path}: write agents as tables, such as [agents.mine] with command = "mine acp"')


def _suggest(word: str, known: Mapping[str, object] | set[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=ALIKE)
    return f"; did you mean {near[0]}?" if near else ""


def _suggest_limit(name: str, known: set[str]) -> str:
    """By what follows the prefix: that alone makes short names look alike."""
    limits = [other.removeprefix(AGENT_PREFIX) for other in known if other.startswith(AGENT_PREFIX)]
    near = difflib.get_close_matches(name.removeprefix(AGENT_PREFIX), limits, n=1, cutoff=NEAR)
    return f"; did you mean {AGENT_PREFIX}{near[0]}?" if near else ""


def _explain(error: ValidationError, origin: Mapping[str, str], path: Path) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        where = [str(part) for part in problem["loc"]]
        message = problem["msg"].removeprefix("Value error, ")
        if not where:
            lines.append(message)
            continue
        name = ".".join(where[:2]) if where[0] == "agents" else where[0]
        source = origin.get(name) or f"{'.'.join(where)} in {path}"
        field = Settings.model_fields.get(where[0])
        is_secret = field is not None and not field.repr
        shown = "" if is_secret else f" (it is {problem['input']!r})"
        lines.append(f"{source}: {message}{shown}")
    return "\n".join(lines)
