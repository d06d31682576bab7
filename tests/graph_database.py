"""A database for the checkpoints of graphs beside that of a server, and a role that graphs are given."""

import contextlib
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from clawdforge.stores.postgres.link import Link
from tests.postgres import Postgres

T = TypeVar("T")
TOP: Final = Path(__file__).parents[1]
HOST: Final = f"env PYTHONPATH={TOP} {sys.executable} -P -m clawdforge.graphs tests.support.graphs"
ROLE: Final = "forge_graph"
PASSWORD: Final = "graph/secret"
AGENT: Final = """
[agents.{name}]
command = "{host}.{graph}"
checkpoints = "database"
{more}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def in_thread(url: str, work: Callable[[Link], T]) -> T:
    """A link has an event loop of its own, which cannot run inside that of a test."""

    def call() -> T:
        with contextlib.closing(Link(url)) as link:
            return work(link)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


class GraphDatabase:
    """`main` is the server's own; `given` the address of the other, as graphs get it."""

    def __init__(self, postgres: Postgres) -> None:
        self.main = postgres.make_database()
        self.owner = postgres.make_empty()
        self.name = self.owner.partition("?")[0].rpartition("/")[2]
        self.given = f"postgresql://{ROLE}:graph%2Fsecret@127.0.0.1:{postgres.port}/{self.name}"
        self.main_name = self.main.partition("?")[0].rpartition("/")[2]
        self.run(f"REVOKE CONNECT ON DATABASE {self.main_name} FROM PUBLIC")
        if not self.fetch("SELECT 1 FROM pg_roles WHERE rolname = $1", ROLE):
            self.run(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")

    @property
    def settings(self) -> dict[str, str]:
        return {
            "CLAWDFORGE_DATABASE_URL": self.main,
            "CLAWDFORGE_GRAPHS_DATABASE_URL": self.given,
            "CLAWDFORGE_AGENT_START_SECS": "60",
        }

    def run(self, sql: str) -> None:
        in_thread(self.owner, lambda link: link.run(sql))

    def fetch(self, sql: str, *args: object) -> list[tuple[object, ...]]:
        return in_thread(self.owner, lambda link: link.fetch(sql, args))

    def list_threads(self) -> list[str]:
        return [str(name) for (name,) in self.fetch("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1")]


def write_agents(folder: Path, more: str = "") -> Path:
    """A settings file with graphs that keep their checkpoints in the database."""
    graphs = {"deep": "deep:deep", "graph": "scripted:graph", "hostile": "hostile:graph"}
    file = folder / "agents.toml"
    file.write_text(
        "".join(AGENT.format(name=name, host=HOST, graph=graphs[name], more=more) for name in graphs)
    )
    return file
