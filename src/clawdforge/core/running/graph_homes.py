"""Homes of agents of which some keep their memory in a database, where the end of each turn is noted."""

from collections.abc import Callable, Sequence
from pathlib import Path

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.models.rows import FileRow
from clawdforge.core.ports import Homes, LiveAgent
from clawdforge.core.ports.threads import GraphThreads
from clawdforge.wire.errors import StoreUnavailable


class GraphHomes:
    """Homes as they are, with a memory that does not lie in them for those who have one elsewhere."""

    def __init__(self, homes: Homes, threads: GraphThreads) -> None:
        self._homes = homes
        self._threads = threads

    async def prepare(self, session_id: str, agent: AgentSpec) -> Path:
        return await self._homes.prepare(session_id, agent)

    async def attach(self, session_id: str, files: Sequence[FileRow]) -> list[Path]:
        return await self._homes.attach(session_id, files)

    async def copy_home(
        self,
        session_id: str,
        turn_index: int,
        agent_session_id: str,
        live: LiveAgent | None,
        app: str = "",
        beside: Callable[[], None] | None = None,
    ) -> None:
        await self._threads.mark(session_id, turn_index, agent_session_id)
        await self._homes.copy_home(session_id, turn_index, agent_session_id, live, app, beside)

    async def restore(self, session_id: str, turn_index: int) -> str | None:
        """A home of which this node has no copy is emptied: what lies in it is of another time."""
        in_home = await self._homes.restore(session_id, turn_index)
        if not turn_index or not _may_be_thread(in_home):
            return in_home
        kept = await self._threads.find(session_id, turn_index)
        if kept is not None and in_home is None:
            await self._homes.restore(session_id, 0)
        return in_home if kept is None else kept

    async def branch(self, source: str, target: str, turn_index: int) -> str | None:
        in_home = await self._homes.branch(source, target, turn_index)
        if not _may_be_thread(in_home):
            return in_home
        return await self._threads.branch(source, target, turn_index) or in_home

    async def remove(self, session_id: str) -> None:
        try:
            await self._threads.remove(session_id)
        except StoreUnavailable as error:  # the homes of others can be removed all the same
            raise OSError(error.message) from error
        await self._homes.remove(session_id)


def _may_be_thread(agent_session_id: str | None) -> bool:
    """Other agents, whose sessions have other names, do not depend on the database of graphs."""
    return agent_session_id is None or ":" in agent_session_id
