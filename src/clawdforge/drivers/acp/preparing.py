"""What the start of an agent does on the disk first, in one go: its folders, their owner, its program."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clawdforge.core.models.agents import Launch
from clawdforge.drivers.acp.files import WorkspaceFiles, open_files
from clawdforge.drivers.folders import attachments, credentials
from clawdforge.drivers.folders.ownership import Ownership, choose_user
from clawdforge.drivers.folders.writable import find_writable
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import find_program
from clawdforge.drivers.processes.users import RunsAs


@dataclass(frozen=True, slots=True)
class Prepared:
    """`readable` and `writable` are folders outside, `files` what it reaches through the server."""

    env: dict[str, str]
    needs: Needs
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    runs_as: RunsAs
    files: WorkspaceFiles


def prepare(
    launch: Launch,
    operator_env: Mapping[str, str],
    operator_home: Path,
    inside: str,
    ownership: Ownership | None,
) -> Prepared:
    """Blocking; meant for a thread. Disks may be slow, and starts come in crowds."""
    env = agent_env(launch.agent, launch.home, operator_env, inside) | dict(launch.env)
    find_program(launch.agent.command[0], env, launch.agent.install)
    needs, writable = Needs.of(launch.agent, mcp=launch.mcp), find_writable(launch)
    readable = (*launch.readable, attachments.make_folder(launch.home))
    runs_as = choose_user(
        ownership, launch, credentials.shared_files(launch.agent.credentials, operator_home)
    )
    return Prepared(env, needs, readable, writable, runs_as, open_files(launch, readable, runs_as.user))
