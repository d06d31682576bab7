"""How long a server takes to be ready after a kill: many events in the log, many turns cut off.

    .venv/bin/python bench/recovery.py [--events 1000000] [--turns 200] [--sessions 1000] [--rounds 3]

The log is seeded through the store. Each round starts a server on a fresh copy of it and takes the time until
it answers; the same with an empty folder says how much of that is the start itself.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from clawdforge.core.clock import SystemClock
from clawdforge.core.ids import new_id
from clawdforge.core.models.events import draft_of
from clawdforge.core.models.rows import AppRow, SessionRow, TurnRow
from clawdforge.core.ports import Tx
from clawdforge.core.rules.turns import queue_turn, start_next
from clawdforge.drivers.acp.updates import read_message
from clawdforge.stores import open_store
from clawdforge.wire.session import OnInterrupt
from clawdforge.wire.turn import TurnState

POLICIES = tuple(OnInterrupt)
CHUNK = "some words of an answer, as agents send them "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        base = Path(folder)
        began = time.perf_counter()
        asyncio.run(seed(base / "seed", args.events, args.turns, args.sessions))
        size = (base / "seed" / "forge.db").stat().st_size / 1e6
        print(f"seeded {args.events} events, {args.turns} turns that run, {size:.0f} MB,", end=" ")
        print(f"in {time.perf_counter() - began:.0f} s")
        empty = [time_start(base / f"empty{number}", 0) for number in range(args.rounds)]
        after = []
        for number in range(args.rounds):
            shutil.copytree(base / "seed", base / f"data{number}")
            after.append(time_start(base / f"data{number}", args.turns))
            shutil.rmtree(base / f"data{number}")
    row("ready on an empty folder", empty)
    row("ready after the kill", after)


def row(name: str, found: list[tuple[float, float]]) -> None:
    walls, cpus = zip(*found, strict=True)
    print(f"{name:32} {statistics.median(walls):6.2f} s p50 {min(walls):6.2f} s min", end=" ")
    print(f"{statistics.median(cpus):6.2f} s of the processor")


async def seed(folder: Path, events: int, turns: int, sessions: int) -> None:
    clock = SystemClock()
    store = await open_store(folder, clock)
    await store.write_system(lambda tx: tx.put_app(AppRow("bench", clock.now())))
    each = events // sessions
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": CHUNK}}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "a", "update": update}}

    def work(tx: Tx, number: int) -> None:
        now = clock.now()
        row = SessionRow(
            app_name="bench",
            session_id=new_id(),
            agent="demo",
            cwd="/",
            created_at=now,
            updated_at=now,
            on_interrupt=POLICIES[number % len(POLICIES)],
        )
        tx.add_session(row)
        running = number < turns
        if running:
            prompt = TurnRow(
                session_id=row.session_id, turn_index=0, state=TurnState.QUEUED, prompt="go", queued_at=now
            )
            queue_turn(tx, row, prompt, now)
            start_next(tx, row.session_id, "bench", now)
        tx.append(row.session_id, [draft_of(read_message(message), 1 if running else None, now)] * each)

    for number in range(sessions):
        await store.write("bench", lambda tx, number=number: work(tx, number))  # type: ignore[misc]
    await store.close()


def time_start(folder: Path, turns: int) -> tuple[float, float]:
    """Seconds from the start of the process until it answers, and its seconds of CPU."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLAWDFORGE_")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # each start would compile what it imports
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "clawdforge", "serve", "--port", "0", "--data-dir", str(folder)],
        env={**env, "CLAWDFORGE_MAX_LIVE_AGENTS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout
        assert server.stderr
        url = server.stdout.readline().split()[-1]
        assert httpx2.get(f"{url}/readyz", verify=False).status_code == 200
        took = time.perf_counter() - began
        ticks = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        used = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        server.terminate()
        said = server.stderr.read()
    if turns:
        assert f"{turns} turns were cut off" in said, said[-1000:]
    return took, used


if __name__ == "__main__":
    main()
