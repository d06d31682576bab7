"""What an agent may write outside its home and workspace, besides credentials, whichever driver starts it."""

from pathlib import Path

from clawdforge.core.models.agents import Launch
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.drivers.processes.worktrees import find_repository


def find_writable(launch: Launch) -> tuple[Path, ...]:
    """The repository of a worktree, for the app `local` only: it may name any folder, and so that one."""
    return find_repository(launch.cwd) if launch.app == LOCAL_APP else ()
