"""What settings must have in common to make sense together."""

from typing import Final
from urllib.parse import parse_qs, urlsplit

from clawdforge.settings.addresses import is_loopback
from clawdforge.settings.kinds import Network
from clawdforge.settings.tables import AgentSettings

POSTGRES_PORT: Final = 5432


def check_agent(name: str, agent: AgentSettings, network: Network, graphs: str | None) -> None:
    """Raises ValueError. `graphs` is the address of the database of graphs."""
    if agent.callback and network != "open":  # the server's port is out of reach, through its own proxy too
        raise ValueError(f'agent {name} has callback = true, which needs network = "open", not {network}')
    if agent.checkpoints != "database":
        return
    if graphs is None:
        raise ValueError(
            f'agent {name} has checkpoints = "database"; name that database in CLAWDFORGE_GRAPHS_DATABASE_URL'
        )
    if network == "none":
        raise ValueError(
            f'agent {name} has checkpoints = "database", which needs network = "open" or "proxy", not none'
        )


def check_trust(host: str, *, trust: bool) -> None:
    if trust and not is_loopback(host):
        raise ValueError(
            f"trust_loopback needs a loopback address to listen on, not {host}; set host=127.0.0.1"
        )


def check_graphs(graphs: str, main: str | None) -> None:
    """Raises ValueError where this cannot be the database of graphs."""
    if main is None:
        raise ValueError("graphs_database_url needs a database_url: the server's own sessions in Postgres")
    place = urlsplit(graphs)
    try:
        name_host(graphs)
    except ValueError:  # its words may hold a part of the password
        raise ValueError("give graphs_database_url its port as a number") from None
    if not place.hostname or "host" in parse_qs(place.query) or not place.username:
        raise ValueError(
            "give graphs_database_url a role, and a host that agents reach, not a socket, such as"
            " postgresql://forge_graph:secret@db.lan/forge_graphs"
        )
    if place.path.strip("/") == urlsplit(main).path.strip("/"):
        raise ValueError(
            "graphs_database_url names the server's own database; make another on the same Postgres: whoever"
            " is let into a database can keep others there from writing"
        )


def name_host(database: str) -> str:
    """The host of a database with its port, as a list of hosts has it."""
    place = urlsplit(database)
    host = f"[{place.hostname}]" if ":" in (place.hostname or "") else place.hostname
    return f"{host}:{place.port or POSTGRES_PORT}"
