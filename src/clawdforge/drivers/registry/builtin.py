"""The built-in agents: the demo, and the table in `agents.toml`."""

import tomllib
from pathlib import Path
from typing import Any, Final

import clawdforge.scripted.program  # noqa: F401 - leaves the compiled forms that nobody can write in a sandbox
from clawdforge import scripted
from clawdforge.core.models.agents import AgentSpec
from clawdforge.wire.quirks import Quirks

DEMO: Final = "demo"
TABLE: Final = Path(__file__).with_name("agents.toml")
LISTS: Final = ("command", "env", "credentials", "copied", "version", "readable")


def load_builtin(table: Path = TABLE) -> tuple[AgentSpec, ...]:
    """All entries, the demo first. An entry that cannot be read is a bug in this package."""
    with table.open("rb") as file:
        entries = tomllib.load(file)
    return (_demo_spec(), *(_build_spec(name, entry) for name, entry in entries.items()))


def _demo_spec() -> AgentSpec:
    return AgentSpec(
        name=DEMO,
        driver="acp",
        title="Demo: answers without any key",
        command=tuple(scripted.command("--demo")),
    )


def _build_spec(name: str, entry: dict[str, Any]) -> AgentSpec:
    fields: dict[str, Any] = {key: tuple(value) if key in LISTS else value for key, value in entry.items()}
    fields["quirks"] = Quirks.model_validate(entry.get("quirks", {})).model_dump(exclude_unset=True)
    return AgentSpec(**{"name": name, "driver": "acp", **fields})
