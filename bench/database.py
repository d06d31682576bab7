"""What turns and sessions cost a Postgres: bytes, its one lock for writing, processor time, connections.

    .venv/bin/python -m bench.database [--turns 200] [--chunks 50] [--nodes 3] [--sessions 100000]

It waits for the disk as in earnest. Sessions are copies of one that was held, with all that belongs to it.
Bytes, transactions and processor time of a turn hardly depend on what else the machine does; other times do,
so its load is printed as well.
"""

import argparse
import math
import os
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil

from bench.kit import cpu_secs, describe_here, new_session, server
from clawdforge.stores.postgres.link import Link
from tests.postgres import Postgres, run_postgres

TABLES: Final = ("sessions", "session_heads", "turns", "events", "messages", "session_bytes")
SESSIONS_EACH: Final = 4
LIVE_AGENTS: Final = 20
"""Of a node, unless it is set otherwise."""
MILLION: Final = 1_000_000
TURN_SECS: Final = 60


@dataclass
class Node:
    http: httpx2.Client
    pid: int
    admin: httpx2.Client

    def locked(self) -> tuple[float, int]:
        """Seconds in transactions, and how many."""
        text = self.admin.get("/metrics").text
        found = [
            re.search(rf"^clawdforge_commit_seconds_{what} (\S+)$", text, re.MULTILINE)
            for what in ("sum", "count")
        ]
        values = [float(one[1]) for one in found if one is not None]
        return values[0], int(values[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=100_000)
    args = parser.parse_args()
    with run_postgres(is_safe=True) as postgres, tempfile.TemporaryDirectory() as folder:
        print(f"{describe_here()}; {postgres_version(postgres)}")
        for count in range(1, args.nodes + 1):
            with nodes(postgres.make_database(), Path(folder) / str(count), count) as (made, link):
                cost_turns(postgres, made, link, args.turns, "echo hello")
        with nodes(postgres.make_database(), Path(folder) / "chunks", 1) as (made, link):
            cost_turns(postgres, made, link, args.turns // 4, f"chunks {args.chunks} 20")
            cost_bytes(link)
        url = postgres.make_database()
        for number, goal in enumerate((args.sessions // 100, args.sessions)):
            with nodes(url, Path(folder) / "many", 1) as (made, link):
                if not number:
                    hold_one(made[0])
            grow(url, goal)
            began = time.perf_counter()
            with nodes(url, Path(folder) / "many", 1) as (made, link):
                cost_sessions(made[0], link, goal, time.perf_counter() - began)


@contextmanager
def nodes(url: str, folder: Path, count: int) -> Iterator[tuple[list[Node], Link]]:
    with ExitStack() as stack:
        found = []
        for number in range(count):
            data = folder / f"node{number}"
            http, pid = stack.enter_context(
                server(data, CLAWDFORGE_DATABASE_URL=url, CLAWDFORGE_LOG_LEVEL="error")
            )
            token = (data / "admin.token").read_text().strip()
            admin = httpx2.Client(base_url=http.base_url, headers={"Authorization": f"Bearer {token}"})
            found.append(Node(http, pid, stack.enter_context(admin)))
        yield found, stack.enter_context(closing(Link(url)))


def cost_turns(postgres: Postgres, made: Sequence[Node], link: Link, turns: int, prompt: str) -> None:
    """With some sessions at each node, each with one turn after another."""
    places = [(node, new_session(node.http)) for node in made for _ in range(SESSIONS_EACH)]
    with ThreadPoolExecutor(len(places)) as pool:
        list(pool.map(lambda place: run_turns(place[0], place[1], 5, prompt), places))
        before = look(postgres, made, link)
        before_threads = {node.pid: threads_of(node.pid) for node in made}
        before_backends = {pid: cpu_secs(pid) for pid in processes_of(postgres)}
        began = time.perf_counter()
        each = turns // len(places)
        ran = list(pool.map(lambda place: run_turns(place[0], place[1], each, prompt), places))
        took = time.perf_counter() - began
    times = [one for some in ran for one in some]
    after = look(postgres, made, link)
    holds = [busiest(threads_of(node.pid), before_threads[node.pid]) for node in made]
    backend = busiest({pid: cpu_secs(pid) for pid in processes_of(postgres)}, before_backends)
    spent = {name: (after[name] - before[name]) / len(times) for name in before}
    print(f"{len(made)} node(s), {prompt!r}: {len(times) / took:.0f} turns/s, load {os.getloadavg()[0]:.1f}")
    print(
        f"  p50 {statistics.median(times) * 1e3:.1f} ms; for each turn"
        f" {spent['locked'] * 1e3:.1f} ms in {spent['commits']:.1f} transactions,"
        f" {spent['wal'] / 1024:.1f} KiB of log, processor: servers {spent['servers'] * 1e3:.1f} ms,"
        f" Postgres {spent['postgres'] * 1e3:.1f} ms; connections {count_connections(link)}"
    )
    if len(made) == 1:
        print(
            f"  of the processor with the lock: {holds[0] / len(times) * 1e3:.1f} ms of the writing thread,"
            f" {backend / len(times) * 1e3:.1f} ms of the process of Postgres that works for it"
        )
        print_computed(len(times) / (holds[0] + backend))


def print_computed(most: float) -> None:
    """How far one lock goes if so many turns in a second can have it."""
    running, asked = most * TURN_SECS, MILLION / 3600
    print(
        f"  computed: {most:.0f} such turns a second by all nodes; {running:.0f} of a minute at the same"
        f" time, at {math.ceil(running / LIVE_AGENTS)} nodes; {asked:.0f} a second, of a million sessions"
        f" with one in an hour, at {math.ceil(asked / most)} database(s)"
    )


def run_turns(node: Node, session: str, count: int, prompt: str) -> list[float]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        reply = node.http.post(f"/sessions/{session}/turn", json={"prompt": prompt})
        assert reply.status_code == 200, reply.text
        times.append(time.perf_counter() - began)
    return times


def look(postgres: Postgres, made: Sequence[Node], link: Link) -> dict[str, float]:
    locked = [node.locked() for node in made]
    ((wal,),) = link.fetch("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")
    return {
        "locked": sum(one[0] for one in locked),
        "commits": sum(one[1] for one in locked),
        "wal": wal,
        "servers": sum(cpu_secs(node.pid) for node in made),
        "postgres": sum(cpu_secs(pid) for pid in processes_of(postgres)),
    }


def threads_of(pid: int) -> dict[int, float]:
    """The processor time of each thread but the first, which has the event loop."""
    tasks = [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    return {
        task: int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) / 1e9
        for task in tasks
        if task != pid
    }


def busiest(after: dict[int, float], before: dict[int, float]) -> float:
    """The one that worked most meanwhile: the writing thread, or the process that works for it."""
    return max(used - before.get(one, 0.0) for one, used in after.items())


def processes_of(postgres: Postgres) -> list[int]:
    pid = int((postgres.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def count_connections(link: Link) -> int:
    """Without this one."""
    sql = "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()"
    return int(link.fetch(sql)[0][0])


def cost_bytes(link: Link) -> None:
    link.run("VACUUM FULL")
    for table in TABLES:
        ((rows, size),) = link.fetch(
            f"SELECT (SELECT count(*) FROM {table}), pg_total_relation_size('{table}')"  # noqa: S608 - our own names
        )
        print(f"  {table}: {rows} rows, {size / max(1, rows):.0f} bytes each with their indexes")


def hold_one(node: Node) -> None:
    session = node.http.post("/sessions", json={"agent": "scripted", "retention": "keep"}).json()[
        "session_id"
    ]
    run_turns(node, session, 1, "echo a word to look for")


def grow(url: str, goal: int) -> None:
    """Until there are so many sessions, all of them copies of the first one."""
    with closing(Link(url, None)) as link:
        ((there,),) = link.fetch("SELECT count(*) FROM sessions")
        link.run("SET session_replication_role = replica")  # what is counted by triggers is copied too
        link.run("CREATE TEMPORARY TABLE first AS SELECT * FROM sessions ORDER BY created_at LIMIT 1")
        link.run("CREATE TEMPORARY TABLE copies (n bigint, session_id text)")
        link.run(
            "INSERT INTO copies SELECT n, gen_random_uuid() FROM generate_series($1::bigint, $2) AS each (n)",
            (there, goal - 1),
        )
        for table in TABLES:
            changed = {"session_id": "copies.session_id", "cwd": "cwd || copies.n", "holder": "NULL"}
            changed |= {"updated_at": "updated_at + copies.n", "id": f"id + {10 * goal} + copies.n * 2"}
            columns = [
                name
                for (name,) in link.fetch(
                    "SELECT column_name FROM information_schema.columns"
                    " WHERE table_name = $1 AND is_generated = 'NEVER'",
                    (table,),
                )
            ]
            values = ", ".join(changed.get(name, f'it."{name}"') for name in columns)
            names = ", ".join(f'"{name}"' for name in columns)
            link.run(
                f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} AS it, copies"  # noqa: S608 - ours
                " WHERE it.session_id = (SELECT session_id FROM first)"
            )
        link.run("ANALYZE")


def cost_sessions(node: Node, link: Link, goal: int, start: float) -> None:
    sizes = [link.fetch(f"SELECT pg_total_relation_size('{table}')")[0][0] for table in TABLES]
    session = new_session(node.http)
    timed: dict[str, Any] = {
        "a page of the list": lambda: node.http.get("/sessions", params={"limit": 50}),
        "a search that finds every one": lambda: node.http.get("/search", params={"q": "word"}),
        "a turn": lambda: node.http.post(f"/sessions/{session}/turn", json={"prompt": "echo on"}),
    }
    print(f"{goal} sessions, {sum(sizes) / goal:.0f} bytes each; a node starts on them in {start:.1f} s")
    for name, call in timed.items():
        times = []
        for _ in range(30):
            began = time.perf_counter()
            assert call().status_code == 200
            times.append(time.perf_counter() - began)
        print(f"  {name}: p50 {statistics.median(times) * 1e3:.1f} ms")


def postgres_version(postgres: Postgres) -> str:
    with closing(Link(postgres.url("postgres"))) as link:
        return str(link.fetch("SELECT version()")[0][0]).partition(" on ")[0]


if __name__ == "__main__":
    main()
