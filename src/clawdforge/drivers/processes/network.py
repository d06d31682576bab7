"""The network of an agent: the machine's, none, or one of its own with the server's proxy as only way out."""

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Self

from clawdforge.drivers.processes.containment import NAMESPACES, Active
from clawdforge.drivers.processes.egress import Egress, Exit
from clawdforge.drivers.processes.environment import NETWORK
from clawdforge.drivers.processes.policy import Network, Policy
from clawdforge.wire.errors import AgentStartFailed
from clawdforge.wire.hosts import AllowedHosts, BadHost

PORT: Final = 3128
"""On the agent's own loopback, where nothing else can have it yet."""

PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
ITSELF: Final = ("localhost", "127.0.0.1", "::1")
"""What an agent reaches on its own loopback, unless the list means the machine's."""

RESOLVERS: Final = 4


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network of one agent; the hosts count with `proxy`."""

    network: Network
    hosts: AllowedHosts

    def set_variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment with the proxies of this network; those of the machine are out of its reach."""
        if self.network == "open":
            return dict(env)
        kept = {name: value for name, value in env.items() if name.upper() not in NETWORK}
        if self.network == "none":
            return kept
        ours = dict.fromkeys(PROXIES, f"http://127.0.0.1:{PORT}")
        ours["NO_PROXY"] = ",".join(name for name in ITSELF if not self.hosts.names(name))
        kept |= {name.lower(): value for name, value in ours.items()}
        return kept | ours | {"NODE_USE_ENV_PROXY": "1"}  # Node heeds the others only then


class Channel:
    """Where the launcher sends the socket that it has opened in the agent's network."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self.fd = self._theirs.fileno()
        self.listen = f"{self.fd}:{PORT}"  # as the launcher takes it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        self._theirs.close()

    def receive(self) -> socket.socket:
        """Call it when the agent has started: the launcher has sent the socket before it said so."""
        self._ours.setblocking(False)
        _, fds, _, _ = socket.recv_fds(self._ours, 1, 1)
        return socket.socket(fileno=fds[0])


class Networks:
    """Decides on the network of each agent. `default` and `hosts` are the server's own settings."""

    def __init__(
        self, default: Network = "open", hosts: tuple[str, ...] = (), own_port: int | None = None
    ) -> None:
        self._default = default
        self._hosts = hosts
        self._own_port = own_port
        self._resolver = ThreadPoolExecutor(RESOLVERS, "egress-resolver")

    def close(self) -> None:
        self._resolver.shutdown(wait=False, cancel_futures=True)

    def choose(self, policy: Policy, active: Active) -> NetworkPlan:
        """Its own setting wins over the server's. It never has more network than it should."""
        network = policy.network or self._default
        if network != "open" and active not in NAMESPACES:
            raise AgentStartFailed(
                f"network {network} needs bubblewrap, and this agent is contained by {active}; install"
                f' bubblewrap, do not switch its sandbox off, or set network = "open" for it'
            )
        try:
            return NetworkPlan(network, AllowedHosts.read((*policy.hosts, *self._hosts)))
        except BadHost as error:
            raise AgentStartFailed(f"`hosts` of [agents.{policy.agent}]: {error}") from error

    async def open_egress(self, channel: Channel, plan: NetworkPlan, agent: str, session: str) -> Egress:
        """The proxy of an agent that has just started."""
        way_out = Exit(agent=agent, session=session, hosts=plan.hosts, own_port=self._own_port)
        egress = Egress(way_out, self._resolver)
        await egress.start(channel.receive())
        return egress
