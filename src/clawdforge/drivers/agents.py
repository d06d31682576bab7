"""The registry of agents: built-in entries, what the operator's settings change, and their drivers."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from clawdforge.core.errors import UnknownAgent
from clawdforge.core.model import AgentSpec
from clawdforge.core.ports import Driver
from clawdforge.drivers.builtin import BUILTIN, DEMO


class Registry:
    """What can be run here. `changes` are the operator's own entries, by name."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        changes: Mapping[str, Mapping[str, object]],
        default: str | None,
        builtin: Sequence[AgentSpec] = BUILTIN,
    ) -> None:
        self._drivers = drivers
        self._specs = {spec.name: spec for spec in builtin}
        for name, change in changes.items():
            given = {key: value for key, value in change.items() if value is not None}
            base = self._specs.get(name) or AgentSpec(name=name, driver="acp", command=())
            self._specs[name] = replace(base, **given)  # type: ignore[arg-type]
        self.default = default or ("claude" if self._ready("claude", changes) else DEMO)
        self.spec(self.default)

    def spec(self, name: str) -> AgentSpec:
        spec = self._specs.get(name)
        if spec is None or not spec.command:
            raise UnknownAgent(f"no agent is called {name[:100]!r}; GET /agents lists those that can be used")
        return spec

    def driver(self, spec: AgentSpec) -> Driver:
        driver = self._drivers.get(spec.driver)
        if driver is None:
            raise UnknownAgent(f"agent {spec.name} wants a driver {spec.driver!r} that is not here")
        return driver

    def specs(self) -> Mapping[str, AgentSpec]:
        return self._specs

    def _ready(self, name: str, changes: Mapping[str, object]) -> bool:
        spec = self._specs.get(name)
        return name in changes or (spec is not None and installed(spec))


def installed(spec: AgentSpec) -> bool:
    program = spec.command[0] if spec.command else ""
    return program == sys.executable or shutil.which(program) is not None
