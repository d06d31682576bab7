"""Ways of keeping: all places of agents, all open sessions, a queue that is looked at, the database's log."""

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from proofs.noise.way import Noisy, Way

PLACES = 20
"""As many as the server has by default: a fifth of them is kept for others."""
HELD_SECS = 1.0


async def limits(noisy: Noisy) -> dict[str, Any]:
    reply = await noisy.call("GET", "/limits")
    found: dict[str, Any] = {} if reply is None or not reply.ok else reply.json()
    return found


async def hold_places(noisy: Noisy) -> None:
    """A turn that sleeps in a session of its own. It bites when so many do that no other of them can."""
    session = await noisy.session()
    await noisy.call("POST", f"/sessions/{session}/turns", {"prompt": "sleep 600"})
    while True:
        found = await limits(noisy)
        waits = found.get("turns_in_flight", 0) > found.get("agents", 0)
        noisy.bite(waits and found["agents"] >= PLACES - PLACES // 5)
        await asyncio.sleep(0.2)


async def fill_pool(noisy: Noisy) -> None:
    """Open sessions until the server says that it is enough, and ask for more."""
    reply = await noisy.call("POST", "/sessions", {"agent": "scripted"})
    if reply is not None and reply.status == 429:
        found = await limits(noisy)
        noisy.bite(found.get("ttl_sessions", 0) >= found.get("max_sessions", 1))
        await asyncio.sleep(0.05)


async def make_queue(noisy: Noisy) -> str:
    """A session whose queue is as long as it may be, of long prompts, behind a turn that sleeps."""
    session = await noisy.session()
    await noisy.client.submit(session, "sleep 600", "first")
    size, words = noisy.size(900, 60), "word " * noisy.size(4_000, 400)
    for number in range(0, size, 20):
        sent = (noisy.client.submit(session, f"echo {words}", f"key-{number + more}") for more in range(20))
        await asyncio.gather(*sent)
    return session


async def prepare_queue(noisy: Noisy) -> None:
    await noisy.once("queue", lambda: make_queue(noisy))


async def look_at_queue(noisy: Noisy) -> None:
    session = await noisy.once("queue", lambda: make_queue(noisy))
    for path in (f"/sessions/{session}", f"/sessions/{session}/turns?limit=1000"):
        reply = await noisy.call("GET", path)
        if reply is not None and reply.ok and path.endswith(session):
            noisy.bite(reply.json()["queued_turns"] >= noisy.size(900, 60))


async def hold_snapshot(noisy: Noisy) -> None:
    """Read the database as a backup does, as of one moment, while the app writes; see that it did both."""
    session = await noisy.once("session", noisy.session)
    database = noisy.folder.parent / "data" / "forge.db"
    reading = asyncio.create_task(asyncio.to_thread(read_slowly, database, session))
    while not reading.done():
        meta = {"note": f"{noisy.random.random()}" * noisy.size(2_000, 200)}
        await noisy.call("PATCH", f"/sessions/{session}", {"meta": meta})
    before, within, after = reading.result()
    noisy.bite(before == within < after)


def read_slowly(database: Path, session: str) -> tuple[int, int, int]:
    """How many events the session had when it began, still had for it at the end, and has."""
    count = "SELECT head FROM sessions WHERE session_id = ?"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN")
        before = connection.execute(count, (session,)).fetchone()[0]
        end = time.monotonic() + HELD_SECS
        while time.monotonic() < end:
            connection.execute("SELECT sum(length(data)) FROM events").fetchone()
        within = connection.execute(count, (session,)).fetchone()[0]
        connection.execute("COMMIT")
        return before, within, connection.execute(count, (session,)).fetchone()[0]


POOLS = (
    Way("places held", "30 turns that sleep, of which 16 have the places of agents", hold_places, 30),
    Way("a full pool", "one app opens as many sessions as it may, and asks for more", fill_pool, 4),
    Way(
        "long queues",
        "a session with 900 long prompts in its queue",
        look_at_queue,
        8,
        prepare_queue,
    ),
    Way("a long reader", "the database read as by a backup, beside writes", hold_snapshot, 1),
)
