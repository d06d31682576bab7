"""The agents that callers can name: those of this node, and what other nodes say that they can start."""

from clawdforge.core.ports import Catalog
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.wire.admin import ELSEWHERE, AgentInfo, AgentPage


class AgentList:
    """As `Catalog` says: the same at every node, but for what only the one that has an agent knows of it."""

    def __init__(self, own: Catalog, elsewhere: Elsewhere) -> None:
        self._own = own
        self._elsewhere = elsewhere

    def page(self) -> AgentPage:
        page, others = self._own.page(), self._elsewhere.agents
        if not others:
            return page
        own = {agent.name for agent in page.agents}
        agents = [
            agent.model_copy(update={"installed": True}) if agent.name in others else agent
            for agent in page.agents
        ]
        agents += [AgentInfo(name=name, driver=ELSEWHERE, installed=True) for name in sorted(others - own)]
        return page.model_copy(update={"agents": agents})
