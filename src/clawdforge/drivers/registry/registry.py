"""The registry of agents: built-in entries, what the operator's settings change, and their drivers."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.ports import Driver
from clawdforge.drivers.registry.builtin import DEMO, load_builtin
from clawdforge.wire.errors import UnknownAgent
from clawdforge.wire.quirks import Quirks


class Registry:
    """The agents that can be used. `changes` are the operator's own entries, by name."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        changes: Mapping[str, Mapping[str, object]],
        default: str | None,
        known: Sequence[AgentSpec] | None = None,
    ) -> None:
        self._drivers = drivers
        self._known = {spec.name: spec for spec in (load_builtin() if known is None else known)}
        self._specs = dict(self._known)
        for name, change in changes.items():
            base = self._specs.get(name) or AgentSpec(name=name, driver="acp", command=())
            self._specs[name] = _apply_change(base, change)
        self.default = default or ("claude" if self._is_ready("claude", changes) else DEMO)
        self.spec(self.default)

    def spec(self, name: str) -> AgentSpec:
        spec = self._specs.get(name)
        if spec is None or not spec.command:
            raise UnknownAgent(f"no agent is called {name[:100]!r}; GET /agents lists those that can be used")
        return spec

    def driver(self, spec: AgentSpec) -> Driver:
        driver = self._drivers.get(spec.driver)
        if driver is None:
            known = ", ".join(self._drivers)
            raise UnknownAgent(f"agent {spec.name} needs the driver {spec.driver!r}; use one of {known}")
        return driver

    def specs(self) -> Mapping[str, AgentSpec]:
        return self._specs

    def is_usable(self, name: str) -> bool:
        spec = self._specs.get(name)
        return spec is not None and is_installed(spec)

    def is_builtin_command(self, spec: AgentSpec) -> bool:
        """Whether the agent runs the built-in command, not one that the operator gave."""
        known = self._known.get(spec.name)
        return known is not None and known.command == spec.command

    def _is_ready(self, name: str, changes: Mapping[str, object]) -> bool:
        spec = self._specs.get(name)
        return name in changes or (spec is not None and is_installed(spec))


def _apply_change(base: AgentSpec, change: Mapping[str, object]) -> AgentSpec:
    """Quirks are merged one by one; every other field is replaced."""
    given = {key: value for key, value in change.items() if value is not None}
    quirks = given.get("quirks")
    if isinstance(quirks, Quirks):
        given["quirks"] = {**base.quirks, **quirks.model_dump(exclude_unset=True)}
    return replace(base, **given)  # type: ignore[arg-type] # the settings have checked the types


def is_installed(spec: AgentSpec) -> bool:
    program = spec.command[0] if spec.command else ""
    return program == sys.executable or shutil.which(program) is not None
