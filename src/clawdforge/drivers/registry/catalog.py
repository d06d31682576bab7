"""The list of agents that callers see: which are installed, in which version, and how they are contained."""

import asyncio
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.processes.environment import TEMPORARY, agent_env
from clawdforge.drivers.processes.policy import Policy
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.registry.registry import Registry, is_installed
from clawdforge.wire.admin import AgentInfo, AgentPage
from clawdforge.wire.errors import AgentError

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 10.0
SAID_BYTES: Final = 4096
PACKAGE_DEPTH: Final = 4
VERSION: Final = re.compile(r"\d+\.\d+[0-9A-Za-z.+-]*")


class AgentCatalog:
    """Versions are looked up once, in the background; a page shows those that are known by then."""

    def __init__(self, registry: Registry, spawner: Spawner, operator_env: Mapping[str, str]) -> None:
        self._registry = registry
        self._spawner = spawner
        self._operator_env = operator_env
        self._versions: dict[str, str] = {}

    def page(self) -> AgentPage:
        specs = self._registry.specs().values()
        return AgentPage(agents=[self._info(spec) for spec in specs], default=self._registry.default)

    async def probe(self) -> None:
        """Look up the versions of installed built-in agents.

        An operator's own command may not know the flag.
        """
        for spec in self._registry.specs().values():
            if spec.install and self._registry.is_builtin_command(spec):
                version = await self.version(spec)
                if version is not None:
                    self._versions[spec.name] = version

    async def version(self, spec: AgentSpec) -> str | None:
        """The program's own version; None when it is not installed, does not run, or does not print one."""
        if not is_installed(spec):
            return None
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return await self._find_version(spec)
        except (AgentError, TimeoutError) as error:
            log.info("the version of %s is not known: %s", spec.name, error or "no answer")
            return None

    async def _find_version(self, spec: AgentSpec) -> str | None:
        packaged = await asyncio.to_thread(_read_package_version, spec.command[0])
        return packaged or await self._run_program(spec)

    async def _run_program(self, spec: AgentSpec) -> str | None:
        with tempfile.TemporaryDirectory(prefix="clawdforge-", ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            (home / TEMPORARY).mkdir()
            process = await self._spawner.spawn(
                [spec.command[0], *spec.version],
                cwd=home,
                home=home,
                env=agent_env(spec, home, self._operator_env),
                tag="probe",
                needs=Needs.of(spec),
                sandbox=spec.sandbox,
                policy=Policy.of(spec),
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
            sandbox = None  # it asks for one that does not work here, so it cannot be started
        return AgentInfo(
            name=spec.name,
            title=spec.title,
            driver=spec.driver,
            installed=is_installed(spec),
            version=self._versions.get(spec.name),
            install=spec.install or None,
            keys=list(spec.keys),
            sandbox=sandbox,
        )


def _read_package_version(program: str) -> str | None:
    """The version in the package.json above an npm program. That is faster than running it."""
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
