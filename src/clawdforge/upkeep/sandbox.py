"""What an agent would see on this machine, and a sandbox like its own to look around in; without a server."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clawdforge.core.models.agents import AgentSpec
from clawdforge.drivers.folders import credentials
from clawdforge.drivers.processes.cgroups import find_cgroups
from clawdforge.drivers.processes.containment import (
    NAMESPACES,
    Active,
    Containment,
    Limits,
    find_containment,
)
from clawdforge.drivers.processes.environment import TEMPORARY, agent_env
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.drivers.processes.held_paths import HeldPaths
from clawdforge.drivers.processes.mounts import AgentFolders, Mount, SystemFiles
from clawdforge.drivers.processes.network import NetworkPlan, Networks
from clawdforge.drivers.processes.pipes import status_pipe
from clawdforge.drivers.processes.policy import Policy
from clawdforge.drivers.processes.runtimes import Finder, Needs
from clawdforge.drivers.processes.spawner import find_program
from clawdforge.drivers.registry.registry import Registry
from clawdforge.settings import Settings

SESSION: Final = "SESSION"


@dataclass(frozen=True, slots=True)
class View:
    """What one agent sees. `active` is `tree` where nothing is hidden; `doubts` are for the operator."""

    agent: str
    command: tuple[str, ...]
    active: str
    reason: str
    network: str
    env: tuple[str, ...]
    limits: Mapping[str, int | None]
    mounts: tuple[Mount, ...]
    found: tuple[Path, ...]  # what its program needs, outside the system's folders
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A command in a sandbox, ready to be run as a process with these descriptors."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    fds: tuple[int, ...]


def find_agent(settings: Settings, name: str) -> AgentSpec:
    """Raises UnknownAgent."""
    changes = {known: dict(change) for known, change in settings.agents.items()}
    return Registry({}, changes, settings.default_agent).spec(name)


def describe(
    settings: Settings, spec: AgentSpec, operator_env: Mapping[str, str], found: Containment | None = None
) -> View:
    """Raises AgentStartFailed where the agent asks for a level or a network that does not work here."""
    containment = found or find_containment(settings.sandbox)
    active = containment.choose(spec.sandbox)
    network = _plan_network(settings, spec, active)
    data_dir = settings.data_dir.resolve()
    folders, finder = _find_folders(spec, data_dir / "homes" / SESSION, data_dir, operator_env, active)
    wanted = Ceilings(processes=settings.agent_max_processes, memory=settings.agent_max_memory_bytes)
    groups = find_cgroups(settings.data_dir, f"sandbox{os.getpid()}", wanted, dry_run=True)
    mounts = () if active == "tree" else tuple(containment.list_mounts(folders))
    return View(
        agent=spec.name,
        command=spec.command,
        active=active,
        reason=containment.reason,
        network=network.network,
        env=tuple(sorted(network.set_variables(agent_env(spec, folders.home, operator_env, active)))),
        limits={"processes": groups.processes, "memory_bytes": groups.memory, "open_files": Limits().nofile},
        mounts=mounts,
        found=tuple(mount.path for mount in mounts if mount in finder.mounts and mount.is_bind),
        doubts=() if active == "tree" else tuple(finder.doubts),
    )


@contextmanager
def open_sandbox(
    settings: Settings, spec: AgentSpec, operator_env: Mapping[str, str], command: Sequence[str]
) -> Iterator[Prepared]:
    """The agent's own sandbox around another command, with a home and a workspace that are thrown away.

    Without a server nothing answers where the variables name a proxy. Raises as `describe` does.
    """
    containment = find_containment(settings.sandbox)
    active = containment.choose(spec.sandbox)
    network = _plan_network(settings, spec, active)
    with tempfile.TemporaryDirectory(prefix="clawdforge-", ignore_cleanup_errors=True) as made:
        data_dir = Path(made).resolve()
        home, workspace = data_dir / "homes" / SESSION, data_dir / "workspaces" / SESSION
        for folder in (home / TEMPORARY, workspace):
            folder.mkdir(parents=True)
        credentials.link_files(home, spec.credentials, Path.home())
        folders, _ = _find_folders(spec, home, settings.data_dir, operator_env, active)
        env = network.set_variables(agent_env(spec, home, operator_env, active))
        env["TERM"] = operator_env.get("TERM", "dumb")
        argv = [find_program(command[0], env), *command[1:]]
        with (
            HeldPaths(folders.list_held()) as held,
            SystemFiles(own=Policy.of(spec).etc) as copied,
            status_pipe() as (status, other_end),
        ):
            wrapped = containment.wrap(
                argv,
                folders=folders,
                sources={**held.sources, **copied.sources},
                status_fd=other_end,
                limits=Limits(),
                sandbox=spec.sandbox,
                allows=spec.allows,
                own_network=network.network != "open",
            )
            try:
                fds = (other_end, *held.fds, *copied.fds)
                yield Prepared(tuple(wrapped), env, held.sources[folders.workspace], fds)
            finally:
                os.close(status)


def _plan_network(settings: Settings, spec: AgentSpec, active: Active) -> NetworkPlan:
    return Networks(settings.agent_network, settings.agent_hosts).choose(Policy.of(spec), active)


def _find_folders(
    spec: AgentSpec, home: Path, data_dir: Path, operator_env: Mapping[str, str], active: Active
) -> tuple[AgentFolders, Finder]:
    workspace = home.parent.parent / "workspaces" / home.name
    env = agent_env(spec, home, operator_env, active)
    finder = Finder(env, data_dir=data_dir, closed=(home, workspace))
    finder.add_needs(Needs.of(spec), env)
    folders = AgentFolders(
        data_dir=data_dir,
        home=home,
        workspace=workspace,
        writable=credentials.shared_files(spec.credentials, Path.home()),
        etc=tuple(path for path, _ in Policy.of(spec).etc) if active in NAMESPACES else (),
        runtime=finder.mounts,
        tmp=home / TEMPORARY,
    )
    return folders, finder
