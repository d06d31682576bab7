"""What this node has for a session, as it knows itself, and what it tells the others of that."""

from typing import Final

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Agents
from clawdforge.core.rules.placement import Lack, choose, find_able, find_room, name_turn
from clawdforge.core.running.known_workspaces import KnownWorkspaces
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.pool import AgentPool
from clawdforge.wire.errors import NowhereToRun

MOST_TOLD: Final = 1000


class Placement:
    def __init__(
        self, membership: Membership, agents: Agents, known: KnownWorkspaces, pool: AgentPool
    ) -> None:
        self._membership = membership
        self._agents = agents
        self._known = known
        self._pool = pool
        self._cannot: dict[str, str] = {}  # by session: the turn that waits there

    @property
    def free(self) -> int:
        """Places for agents that no turn needs."""
        return self._pool.free

    @property
    def usable(self) -> list[str]:
        """The agents that can be started here."""
        return [name for name in self._agents.specs() if self._agents.is_usable(name)]

    @property
    def cannot(self) -> list[str]:
        """Turns that wait, and that cannot be run here; in one order, since only so many are told."""
        return sorted(self._cannot.values())[:MOST_TOLD]

    def is_home(self, session_id: str) -> bool:
        """Whether the session has an agent here, or is about to."""
        return self._pool.has_seat(session_id)

    async def end_agent(self, session_id: str) -> bool:
        """End the agent that a session still has here, such as the one before it was given another."""
        return await self._pool.end_agent(session_id)

    async def find_lack(self, session: SessionRow) -> Lack | None:
        """What the session needs and this node has not; nothing where the node has no others beside it."""
        lack = await self._find_lack(session)
        if lack is Lack.FOLDER and self.is_home(session.session_id):
            return None  # it is worked in already, and compared at every use
        return lack

    async def _find_lack(self, session: SessionRow) -> Lack | None:
        if not self._membership.has_peers:
            return None
        if not self._agents.is_usable(session.agent):
            return Lack.AGENT
        if not session.own_cwd and not await self._known.is_offered(session):
            return Lack.FOLDER
        return None

    def find_able(self, session: SessionRow, turn_index: int) -> list[str]:
        """Other nodes that may be able to run a turn."""
        turn = name_turn(session.session_id, turn_index)
        return find_able(self._membership.others, session.agent, turn)

    def find_taker(self, session: SessionRow, *, anywhere: bool) -> str | None:
        """The node that a session is left to: one with room, or `anywhere` if it is only able."""
        others = self._membership.others
        chosen = choose(session.session_id, find_room(others, session.agent))
        if chosen is None and anywhere:
            able = [node for node in find_able(others, session.agent, "") if others[node].usable is not None]
            chosen = choose(session.session_id, able)
        return chosen

    def list_agents(self) -> set[str]:
        """What other nodes say that they can start."""
        return {name for tells in self._membership.others.values() for name in tells.usable or ()}

    def note(self, session_id: str, turn_index: int) -> None:
        """This node cannot run a turn that waits."""
        self._cannot[session_id] = name_turn(session_id, turn_index)

    def keep(self, waiting: set[str]) -> None:
        """Forget what does not wait any more."""
        self._cannot = {one: turn for one, turn in self._cannot.items() if one in waiting}

    async def need_all(self, session: SessionRow) -> None:
        """NowhereToRun when this node has not what the session needs: no other had it either.

        A node that is alone, and had it once, says itself what is wrong with it.
        """
        lack = await self._find_lack(session)
        was_here = session.agent in self._agents.specs()
        if lack is Lack.FOLDER:
            was_here = not session.identities or self._membership.folder in session.identities
        if was_here and self._membership.is_alone:
            return
        if lack is Lack.AGENT:
            raise NowhereToRun(
                f"no server that lives and could run this session can start the agent {session.agent!r}:"
                " install and configure it, or give the session another agent"
            )
        if lack is Lack.FOLDER:
            raise NowhereToRun(
                f"no server that lives offers the folder {session.cwd}: start the one that has it"
                " (`clawdforge nodes` shows those that live), make or mount it at another and let the app"
                " work there, or start a new session"
            )
