"""Where a graph's checkpoints lie: in its home, or in a database that the server lets it into."""

import uuid
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from clawdforge.graphs.loading import NoGraph, load_part

FILE: Final = Path(".clawdforge") / "checkpoints.db"
"""Below HOME, so that checkpoints are copied, restored and forked together with the home."""
IN_DATABASE: Final = "clawdforge.graphs.database"
MISSING: Final = (
    "this graph's checkpoints are to lie in a database, but {name} is not installed, which that needs; run"
    " `pip install 'clawdforge[langgraph-postgres]'` in the environment of the graph"
)


@dataclass(frozen=True, slots=True)
class Place:
    """`threads` is what the names of its threads begin with; without a `database` they lie in the home."""

    threads: str
    home: Path
    database: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)


def take_place(env: MutableMapping[str, str]) -> Place:
    """What the server has said. The secret is taken out of the environment, which tools inherit."""
    home = Path(env.get("HOME", "."))
    database, secret = env.pop("CLAWDFORGE_GRAPH_DATABASE", ""), env.pop("CLAWDFORGE_GRAPH_PASS", "")
    threads = env.pop("CLAWDFORGE_GRAPH_THREADS", "") or f"{home.name or uuid.uuid4()}:"
    return Place(threads, home, database, secret)


@asynccontextmanager
async def open_saver(place: Place) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """NoGraph when the checkpoints cannot be reached."""
    if place.database:
        try:
            part = load_part(IN_DATABASE)
        except ModuleNotFoundError as error:
            raise NoGraph(MISSING.format(name=error.name)) from error
        async with part.open_saver(place.database, place.secret) as found:
            yield found
        return
    file = place.home / FILE
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await saver.setup()
        yield saver
