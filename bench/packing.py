"""What events take in the database before and after they are packed, and what it costs to read them.

    .venv/bin/python -m bench.packing [--turns 200] [--chunks 200] [--sessions 5]

Answers in chunks of some six bytes, with a tool call here and there. Times are the processor's, all threads.
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

from clawdforge.core.clock import SystemClock
from clawdforge.core.ids import new_id
from clawdforge.core.log import PAGE_BYTES, SLICE_EVENTS, STREAM_BYTES
from clawdforge.core.models.events import Draft, draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.base import Micros
from clawdforge.wire.event import EventType

APP = "bench"
LETTERS = "etaoinshrdlu"
PAGE_EVENTS = 1000
ANYWHERE = 300
AT_ONCE = 4
"""Events of one job: of more, the store makes packs at once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        asyncio.run(measure(Path(folder) / "data", args.sessions, args.turns, args.chunks))


async def measure(data: Path, sessions: int, turns: int, chunks: int) -> None:
    store = await open_store(data, SystemClock())
    empty, names = await room(store), [new_id() for _ in range(sessions)]
    for name in names:
        await fill(store, name, turns, chunks)
    head, count = turns * chunks, turns * chunks * sessions
    before, rows = await room(store) - empty, await reading(store, names[0], head)
    begun, packs = time.process_time(), 0
    for name in names:
        while await store.pack(APP, name, head):
            packs += 1
    cost = time.process_time() - begun
    after, packed = await room(store) - empty, await reading(store, names[0], head)
    print(f"{count:,} events: {before / count:.0f} bytes each as rows, {after / count:.1f} in {packs} packs")
    print(f"packing: {1e6 * cost / count:.1f} µs an event; no job kept the writer for {longest(store)} s")
    for name, cost in rows.items():
        print(f"{name}: {cost:.2f} µs an event from rows, {packed[name]:.2f} from packs")
    await store.close()


async def fill(store: SqliteStore, session_id: str, turns: int, chunks: int) -> None:
    row = SessionRow(app_name=APP, session_id=session_id, agent="a", cwd="/", created_at=1, updated_at=1)
    await store.write(APP, lambda tx: tx.add_session(row))
    chance, at = random.Random(1), SystemClock().now()  # noqa: S311 - no secret
    for turn in range(1, turns + 1):
        events: list[Draft] = []
        for _ in range(chunks):
            at += chance.randrange(500, 40_000)
            events.append(make_event(chance, turn, at))
        few = [events[first : first + AT_ONCE] for first in range(0, len(events), AT_ONCE)]
        await asyncio.gather(
            *(store.write(APP, lambda tx, some=some: tx.append(session_id, some)) for some in few)  # type: ignore[misc]
        )


def make_event(chance: random.Random, turn: int, at: Micros) -> Draft:
    if chance.random() < 0.97:
        word = "".join(chance.choices(LETTERS, k=chance.randrange(2, 9)))
        return draft(EventType.TEXT, turn, at, {"content": f"{word} "})
    output = " ".join("".join(chance.choices(LETTERS, k=6)) for _ in range(40))
    update = {"toolCallId": f"call_{chance.getrandbits(64):x}", "status": "completed", "content": output}
    return draft(EventType.TOOL_UPDATE, turn, at, {"update": update})


async def room(store: SqliteStore) -> int:
    """The bytes of the database that are in use."""

    def work(tx: Tx) -> int:
        connection = tx._db.plain.connection  # type: ignore[attr-defined]  # noqa: SLF001
        pages = int(connection.pragma("page_count")) - int(connection.pragma("freelist_count"))
        return pages * int(connection.pragma("page_size"))

    return await store.write(APP, work)


async def reading(store: SqliteStore, session_id: str, head: int) -> dict[str, float]:
    """Microseconds an event, in the pages of a program and in those of a stream, and for one anywhere."""
    found, chance = {}, random.Random(1)  # noqa: S311 - no secret
    for name, limit, size in (("pages", PAGE_EVENTS, PAGE_BYTES), ("a stream", SLICE_EVENTS, STREAM_BYTES)):
        begun, after = time.process_time(), 0
        while after < head:
            after = await read(store, session_id, after, limit, size)
        found[name] = 1e6 * (time.process_time() - begun) / head
    begun = time.process_time()
    for _ in range(ANYWHERE):
        await read(store, session_id, chance.randrange(head), 1, 1)
    found["one anywhere"] = 1e6 * (time.process_time() - begun) / ANYWHERE
    return found


async def read(store: SqliteStore, session_id: str, after: int, limit: int, size: int) -> int:
    page = {"after": after, "limit": limit, "max_bytes": size}
    return (await store.read(APP, lambda view: view.events(session_id, **page)))[-1].seq


def longest(store: SqliteStore) -> str:
    """The end of the class of the longest job."""
    *classes, _, count = store.job_times.samples()
    return next(one.labels["le"] for one in classes if one.value == count.value)


if __name__ == "__main__":
    main()
