"""Durable backends: the one in the data folder, and the one in a database that the operator names."""

from pathlib import Path
from typing import Any, Final

from clawdforge.by_name import load
from clawdforge.core.clock import Clock
from clawdforge.core.ports import Store
from clawdforge.core.ports.threads import GraphThreads
from clawdforge.stores.sqlite.snapshot import FILE
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import StoreUnavailable, Unsupported

POSTGRES: Final = "clawdforge.stores.postgres.store:PostgresStore"
GRAPHS: Final = "clawdforge.stores.postgres.graph_threads:PgGraphThreads"
MISSING: Final = (
    "CLAWDFORGE_DATABASE_URL is set, but {name} is not installed, which it needs; run"
    " `pip install 'clawdforge[postgres]'`, or unset it"
)
TWO: Final = (
    "CLAWDFORGE_DATABASE_URL is set, but {path} has the sessions of this data folder; move them with"
    " `clawdforge migrate --from-sqlite`, or unset it, or choose an empty folder with --data-dir"
)


async def open_store(data_dir: Path, clock: Clock, remembered: int = 0, *, packs: bool = True) -> SqliteStore:
    """Open the store of a data folder, making both if they are missing.

    The caller holds the folder's lock. `remembered` is how many sessions have left folders there: with them,
    a store that is missing was lost, and is not made anew. `packs` is whether events may be packed.
    """
    return await SqliteStore.open(data_dir, clock, remembered, packs=packs)


async def open_database(
    url: str, data_dir: Path, clock: Clock, remembered: int = 0, folder: str = "", lease: float = 10.0
) -> Store:
    """Open the store in a Postgres database, making its tables if they are missing.

    `remembered` is as above; `folder` is what tells this data folder from those of other nodes, which wait
    for a sign of life for the length of a `lease`. Unsupported where the extra is not installed.
    """
    if (data_dir / FILE).exists():
        raise StoreUnavailable(TWO.format(path=data_dir / FILE))
    try:
        kind: Any = load(POSTGRES)
    except ModuleNotFoundError as error:
        raise Unsupported(MISSING.format(name=error.name)) from error
    store: Store = await kind.open(url, clock, remembered, data_dir, folder, lease)
    return store


async def open_graph_threads(main: str, given: str, max_marks: int, max_bytes: int) -> GraphThreads:
    """Open the database of graphs, as its owner; `given` is its address as graphs get it.

    StoreUnavailable where the role of that address reaches more than it should.
    """
    threads: GraphThreads = await load(GRAPHS).open(main, given, max_marks, max_bytes)
    return threads
