"""What a server finds out of its machine when it starts: how agents can be held there, each part tried."""

import logging
from typing import NamedTuple

from clawdforge.core.ids import new_id
from clawdforge.drivers.processes.cgroups import Groups, find_cgroups
from clawdforge.drivers.processes.containment import Containment, find_containment
from clawdforge.drivers.processes.group_trees import Ceilings
from clawdforge.drivers.processes.survivors import Tag, folder_id
from clawdforge.drivers.processes.user_wall import try_users
from clawdforge.settings import Settings

log = logging.getLogger(__name__)


class Machine(NamedTuple):
    """`boot` is the id of this start, by which the next one knows what was left behind."""

    boot: str
    groups: Groups
    containment: Containment


def find_machine(settings: Settings) -> Machine:
    """Blocks for some 100 ms, most of which it waits for programs that it tries."""
    boot = new_id()
    tag = Tag(folder_id(settings.data_dir), boot, "none", "probe")
    ceilings = Ceilings(processes=settings.agent_max_processes, memory=settings.agent_max_memory_bytes)
    # First, and alone: with version 2 the server must be the only process of its group while it moves.
    groups = find_cgroups(settings.data_dir, boot, ceilings)
    found = find_containment(settings.sandbox, tag=tag)
    containment = try_users(found, settings.agent_uids, settings.data_dir, tag=tag)
    if settings.sandbox != "off" and containment.bwrap is None:
        log.warning("%s", containment.describe_lack())
    if None in (groups.processes, groups.memory):
        log.warning("agents are not held to all limits: %s; see `clawdforge doctor`", groups.details)
    return Machine(boot, groups, containment)
