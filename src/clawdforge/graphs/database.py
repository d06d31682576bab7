"""LangGraph's saver over Postgres, in a database where the server has made the tables already."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from clawdforge.graphs.loading import NoGraph
from clawdforge.graphs.tunnel import find_way

CONNECT_SECONDS: Final = 15
IDLE_SECONDS: Final = 60.0
POSTGRES_PORT: Final = 5432
ENTER: Final = "SELECT set_config('clawdforge.pass', %s, false)"
MADE: Final = "SELECT max(v) AS made FROM checkpoint_migrations"

Connection = psycopg.AsyncConnection[DictRow]


@asynccontextmanager
async def open_saver(url: str, secret: str) -> AsyncIterator[AsyncPostgresSaver]:
    """Every connection shows the secret first: by that, Postgres knows which threads are this graph's."""

    async def enter(connection: Connection) -> None:
        await connection.execute(ENTER, (secret,))

    settings: dict[str, Any] = {
        "autocommit": True,
        "prepare_threshold": 0,
        "row_factory": dict_row,
        "application_name": "clawdforge graph",
        "connect_timeout": CONNECT_SECONDS,
    }
    async with AsyncExitStack() as stack:
        try:
            where = await _find_address(url, stack)
            async with await Connection.connect(where, **settings) as first:
                await enter(first)
                found = await (await first.execute(MADE)).fetchone()
        except (psycopg.Error, OSError) as error:
            words = " ".join(str(error).split())
            raise NoGraph(f"the database of this graph's checkpoints cannot be used: {words}") from error
        _check_version(found["made"] if found else None)
        pool = AsyncConnectionPool(
            where,
            connection_class=Connection,
            kwargs=settings,
            min_size=0,
            max_size=1,  # the saver uses one at a time
            max_idle=IDLE_SECONDS,
            timeout=CONNECT_SECONDS,
            configure=enter,
            check=AsyncConnectionPool.check_connection,
            open=False,
        )
        await stack.enter_async_context(pool)
        yield AsyncPostgresSaver(pool)


async def _find_address(url: str, stack: AsyncExitStack) -> str:
    """As it is, or with the proxy's end of a tunnel to it, where that is the only way out."""
    said = conninfo_to_dict(url)
    host, port = str(said["host"]), int(said.get("port") or POSTGRES_PORT)
    end = await find_way(host, port, os.environ.get("HTTPS_PROXY", ""), stack)
    # `host` stays what a certificate is compared with.
    return url if end is None else make_conninfo(url, hostaddr=end[0], port=end[1])


def _check_version(made: int | None) -> None:
    wanted = len(AsyncPostgresSaver.MIGRATIONS) - 1
    if made is None or made < wanted:
        raise NoGraph(
            f"langgraph-checkpoint-postgres wants tables of version {wanted}, and the server has made"
            f" {made}; upgrade the server, or install an older langgraph-checkpoint-postgres"
        )
