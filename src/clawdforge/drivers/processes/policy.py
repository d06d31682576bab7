"""What an agent's settings say about its walls: its network and hosts, what it is allowed, its own /etc."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from clawdforge.core.models.agents import AgentSpec
from clawdforge.wire.quirks import Quirks

Network = Literal["open", "none", "proxy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Of one agent; `network` is None where the server's own setting counts."""

    agent: str = ""
    network: Network | None = None
    hosts: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()
    etc: tuple[tuple[Path, bytes], ...] = ()  # files that only it sees, and only inside bubblewrap

    @classmethod
    def of(cls, spec: AgentSpec) -> Self:
        given = Quirks.model_validate(spec.quirks).contained_etc.items()
        etc = tuple((Path("/etc", name), text.encode()) for name, text in given)
        return cls(agent=spec.name, network=spec.network, hosts=spec.hosts, allows=spec.allows, etc=etc)


NO_POLICY: Final = Policy()
