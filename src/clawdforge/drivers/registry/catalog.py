"""What can be run here, as callers see it: which agents are installed, in which version, how contained."""

import asyncio
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clawdforge.core.model import AgentSpec
from clawdforge.drivers.processes.environment import TEMPORARY, agent_env
from clawdforge.drivers.processes.process import Spawner
from clawdforge.drivers.registry.registry import Registry, installed
from clawdforge.wire.admin import AgentInfo, AgentPage
from clawdforge.wire.errors import AgentError

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 10.0
SAID_BYTES: Final = 4096
PACKAGE_DEPTH: Final = 4
VERSION: Final = re.compile(r"\d+\.\d+[0-9A-Za-z.+-]*")


class AgentCatalog:
    """Versions are asked for once, in the background; a page only tells what is known by then."""

    def __init__(self, registry: Registry, spawner: Spawner, operator_env: Mapping[str, str]) -> None:
        self._registry = registry
        self._spawner = spawner
        self._operator_env = operator_env
        self._versions: dict[str, str] = {}

    def page(self) -> AgentPage:
        specs = self._registry.specs().values()
        return AgentPage(agents=[self._info(spec) for spec in specs], default=self._registry.default)

    async def probe(self) -> None:
        """Ask the installed built-in agents, one by one. Somebody's own command might not know the flag."""
        for spec in self._registry.specs().values():
            if spec.install and self._registry.own_program(spec):
                version = await self.version(spec)
                if version is not None:
                    self._versions[spec.name] = version

    async def version(self, spec: AgentSpec) -> str | None:
        """What the program says of itself; None when it is not there, does not run, or does not say."""
        if not installed(spec):
            return None
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return await self._ask(spec)
        except (AgentError, TimeoutError) as error:
            log.info("the version of %s is not known: %s", spec.name, error or "no answer")
            return None

    async def _ask(self, spec: AgentSpec) -> str | None:
        packaged = await asyncio.to_thread(_packaged, spec.command[0])
        return packaged or await self._run(spec)

    async def _run(self, spec: AgentSpec) -> str | None:
        with tempfile.TemporaryDirectory(prefix="clawdforge-", ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            (home / TEMPORARY).mkdir()
            process = await self._spawner.spawn(
                [spec.command[0], *spec.version],
                cwd=home,
                home=home,
                env=agent_env(spec, home, self._operator_env),
                tag="probe",
                sandbox=spec.sandbox,
            )
            try:
                process.stdin.close()
                said = await process.stdout.read(SAID_BYTES)
            finally:
                await process.close(eof_grace=0.2, term_grace=0.2)
        found = VERSION.search(said.decode(errors="replace"))
        return found[0] if found else None

    def _info(self, spec: AgentSpec) -> AgentInfo:
        try:
            sandbox: str | None = self._spawner.containment.choose(spec.sandbox)
        except AgentError:
            sandbox = None  # it asks for one that is not to be had here, so it cannot be started
        return AgentInfo(
            name=spec.name,
            title=spec.title,
            driver=spec.driver,
            installed=installed(spec),
            version=self._versions.get(spec.name),
            install=spec.install or None,
            sandbox=sandbox,
        )


def _packaged(program: str) -> str | None:
    """From the package.json that a program of npm lies below: quicker than to start it, and all have one."""
    found = shutil.which(program)
    for folder in Path(found).resolve().parents[:PACKAGE_DEPTH] if found else ():
        try:
            package = json.loads((folder / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        version = package.get("version") if isinstance(package, dict) else None
        if isinstance(version, str) and VERSION.fullmatch(version):
            return version
    return None
