"""What a turn and what is said cost with Postgres beside SQLite, in one run that alternates between them.

    .venv/bin/python -m bench.postgres [--sessions 1,8,64] [--blocks 10] [--rounds 30]

Postgres runs on the same machine and waits for the disk, as SQLite does. So its times say less than the
processor time of the server and the number of round trips, which `bench/budget_postgres.json` bounds. Beside
each figure stands what it is to be on a machine that has nothing else to do.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.beside import (
    PLENTY,
    cost_chunks,
    cost_turns,
    count_cheapest_turn,
    show_costs,
    show_heads,
    show_pair,
)
from bench.kit import describe_here, server
from clawdforge.core.clock import SystemClock
from clawdforge.core.ids import new_id
from clawdforge.core.models.events import Draft, draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Store, Tx
from clawdforge.stores import open_store
from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.wire.event import EventType
from clawdforge.wire.session import Activity
from tests.postgres import run_postgres

COUNTED, WARM_ROUNDS, CHUNKS = 12, 3, 10
LEAST_ROUNDS = 640  # of all sessions, in a block
UPDATES = (
    "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE n_tup_upd > 0 ORDER BY 2 DESC"
)
NAMES = ("SQLite", "Postgres")
APP = "local"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", default="1,8,64")
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    counts = [int(part) for part in args.sessions.split(",")]
    print(describe_here())
    show_heads(*NAMES)
    with (
        run_postgres(is_safe=True) as postgres,
        tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder,
    ):
        base, url = Path(folder), postgres.make_database()
        show_counts(base, postgres.make_database())
        show_turns(base, url, counts, args.blocks)
        time.sleep(1.0)  # until Postgres has counted
        show_updates(url)
    with (  # one that has nothing left to do for what came before
        run_postgres(is_safe=True) as postgres,
        tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder,
    ):
        asyncio.run(show_chunks(Path(folder), postgres.make_database(), counts, args.blocks, args.rounds))
    print(f"load at the end {os.getloadavg()[0]:.1f}")


def show_counts(base: Path, url: str) -> None:
    found = [
        count_cheapest_turn(base / f"counted-{name}", COUNTED, CLAWDFORGE_LOG_LEVEL="error", **env)
        for name, env in zip(NAMES, ({}, {"CLAWDFORGE_DATABASE_URL": url}), strict=True)
    ]
    for what, aim in (("statements", "≤ 4"), ("reads", ""), ("commits", "")):
        show_pair(f"{what} of a turn", [float(found[0][what])], [float(found[1][what])], aim)


def show_turns(base: Path, url: str, counts: Sequence[int], blocks: int) -> None:
    quiet = {"CLAWDFORGE_LOG_LEVEL": "error", **PLENTY}
    with (
        server(base / "sqlite", **quiet) as one,
        server(base / "postgres", CLAWDFORGE_DATABASE_URL=url, **quiet) as other,
    ):
        for sessions in counts:
            found = cost_turns({"SQLite": one, "Postgres": other}, sessions, blocks)
            show_costs(f"{sessions} session(s)", found["SQLite"], found["Postgres"], "≤ 1.2")
        for sessions in counts:
            said = cost_chunks({"SQLite": one, "Postgres": other}, sessions, blocks)
            what, aim = f"{sessions} agent(s)", "≥ 0.9" if sessions >= 64 else ""
            show_pair(f"{what}: chunks a second", said["SQLite"].rates, said["Postgres"].rates, aim)
            show_pair(f"{what}: CPU of a chunk, us", said["SQLite"].cpu, said["Postgres"].cpu)


async def show_chunks(folder: Path, url: str, counts: Sequence[int], blocks: int, rounds: int) -> None:
    """Sessions that say something all the time, without agents or readers: what the stores alone take."""
    clock = SystemClock()
    stores: dict[str, Store] = {
        "SQLite": await open_store(folder, clock),
        "Postgres": await PostgresStore.open(url, clock),
    }
    for sessions in counts:
        made = {name: await make_sessions(store, sessions) for name, store in stores.items()}
        rates: dict[str, list[float]] = {name: [] for name in NAMES}
        cpu: dict[str, list[float]] = {name: [] for name in NAMES}
        each = max(rounds, LEAST_ROUNDS // sessions)
        for block in range(blocks + 1):
            for name in NAMES[:: -1 if block % 2 else 1]:
                rate, spent = await say(stores[name], made[name], each if block else WARM_ROUNDS)
                if block:
                    rates[name].append(rate)
                    cpu[name].append(spent)
        what = f"the stores alone, {sessions} session(s)"
        aim = "≥ 0.9" if sessions >= 64 else ""
        show_pair(f"{what}: chunks a second", rates["SQLite"], rates["Postgres"], aim)
        show_pair(f"{what}: CPU of a chunk, us", cpu["SQLite"], cpu["Postgres"])
    for store in stores.values():
        await store.close()


async def make_sessions(store: Store, count: int) -> list[str]:
    rows = [
        SessionRow(
            app_name=APP,
            session_id=new_id(),
            agent="a",
            cwd="/",
            created_at=1,
            updated_at=1,
            activity=Activity.RUNNING,  # where something is said, a turn runs
        )
        for _ in range(count)
    ]
    for row in rows:
        await store.write(APP, lambda tx, row=row: tx.add_session(row))  # type: ignore[misc]
    return [row.session_id for row in rows]


async def say(store: Store, sessions: Sequence[str], rounds: int) -> tuple[float, float]:
    """Chunks in a second, and microseconds of this process for each."""
    said = [draft(EventType.TEXT, 1, 1_000, {"content": "hello world"})] * CHUNKS
    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_say_some(store, session, said, rounds) for session in sessions))
    count = len(sessions) * rounds * CHUNKS
    return count / (time.perf_counter() - begun), (time.process_time() - cpu) / count * 1e6


async def _say_some(store: Store, session_id: str, said: list[Draft], rounds: int) -> None:
    def work(tx: Tx) -> None:
        tx.append(session_id, said)
        tx.app_row()

    for _ in range(rounds):
        await store.write(APP, work)


def show_updates(url: str) -> None:
    """Of the turns above, by table; those of a session's head are to be HOT in 95 of 100."""
    with contextlib.closing(Link(url)) as link:
        for table, updates, hot in link.fetch(UPDATES):
            print(f"updates of {table}: {updates}, of which HOT: {hot / updates:.1%}")


if __name__ == "__main__":
    main()
