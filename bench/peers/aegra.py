"""aegra: LangGraph's routes over a Postgres of its own, with graphs in the server's own process."""

import contextlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench.contenders import MANY, Contender
from bench.peers.kit import Peer
from bench.peers.langgraph import GRAPH, Threads
from clawdforge.stores.postgres.link import Link
from proofs.kit.server import free_port
from tests.postgres import Postgres, run_postgres

DOES: Final = frozenset({"start", "turn", "many", "rate", "chunks", "delay"})
"""What it keeps lies in Postgres, which keeps its log before the rows: a folder's growth says little."""
PASSWORD: Final = "bench"  # noqa: S105 - on loopback, for minutes
QUIET: Final = {"LOG_LEVEL": "ERROR", "AUTH_TYPE": "noop", "LANGSMITH_TRACING": "false"}


class Aegra(Peer):
    def __init__(self) -> None:
        super().__init__("aegra")

    @contextmanager
    def run(self, place: Path) -> Iterator[Contender]:
        begun = time.perf_counter()
        port, own = free_port(), free_port()
        place.mkdir(parents=True, exist_ok=True)
        config = place / "aegra.json"
        config.write_text(json.dumps({"graphs": {"bench": GRAPH}}))
        with ThreadPoolExecutor(1) as apart, ExitStack() as stack:  # a link has a loop of its own
            running = run_postgres(is_safe=True, port=own)
            postgres = apart.submit(running.__enter__).result()
            stack.push(running)
            name = apart.submit(prepare, postgres).result()
            database = f"postgresql://postgres:{PASSWORD}@127.0.0.1:{own}/{name}"
            preparing = time.perf_counter() - begun
            env = {**QUIET, "DATABASE_URL": database, "N_JOBS_PER_WORKER": str(MANY)}
            command = [self.executable, "serve", "--host", "127.0.0.1", "--port", str(port)]
            url, whole = f"http://127.0.0.1:{port}", self.environment(place, **env)
            beside = int((postgres.folder / "data" / "postmaster.pid").read_text().split()[0])
            with self.serve([*command, "-c", str(config)], place, url, "/health", whole) as pid:
                dialect = Threads()
                yield Contender(self.name, url, pid, dialect, place, DOES, preparing, (beside,))


def prepare(postgres: Postgres) -> str:
    """The name of an empty database that is entered with a password."""
    with contextlib.closing(Link(postgres.url("postgres"))) as link:
        link.run(f"ALTER USER postgres PASSWORD '{PASSWORD}'")
    return postgres.make_empty().partition("?")[0].rpartition("/")[2]
