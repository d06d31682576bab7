"""What an agent's settings say about its walls: its network, the hosts it may reach, what it is allowed."""

from dataclasses import dataclass
from typing import Final, Literal, Self

from clawdforge.core.agent_model import AgentSpec

Network = Literal["open", "none", "proxy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Of one agent; `network` is None where the server's own setting counts."""

    agent: str = ""
    network: Network | None = None
    hosts: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: AgentSpec) -> Self:
        return cls(agent=spec.name, network=spec.network, hosts=spec.hosts, allows=spec.allows)


NO_POLICY: Final = Policy()
