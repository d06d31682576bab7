"""What the start of an agent looks up on the disk first: its folders, its files and its program."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clawdforge.core.models.agents import Launch
from clawdforge.drivers.folders import attachments, credentials
from clawdforge.drivers.folders.writable import find_writable
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import find_program


@dataclass(frozen=True, slots=True)
class Prepared:
    """`shared` are the operator's files that it may write, `readable` `writable` folders outside."""

    env: dict[str, str]
    needs: Needs
    readable: tuple[Path, ...]
    shared: tuple[Path, ...]
    writable: tuple[Path, ...]


def prepare(launch: Launch, operator_env: Mapping[str, str], operator_home: Path, inside: str) -> Prepared:
    """Blocking; meant for a thread. Disks may be slow, and starts come in crowds."""
    env = agent_env(launch.agent, launch.home, operator_env, inside) | dict(launch.env)
    find_program(launch.agent.command[0], env, launch.agent.install)
    return Prepared(
        env,
        Needs.of(launch.agent, mcp=launch.mcp),
        (*launch.readable, attachments.make_folder(launch.home)),
        credentials.shared_files(launch.agent.credentials, operator_home),
        find_writable(launch),
    )
