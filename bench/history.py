"""What operations on history cost the server, by the length of a history and by the number of sessions.

    .venv/bin/python -m bench.history [--messages 10,1000,10000] [--sessions 100,5000,100000] [--count 200]

CPU of the whole server process in milliseconds for one call over HTTP, by its own clock, so that what else
runs on the machine does not count. The histories are written into the database beforehand.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2

from bench.kit import server
from clawdforge.core.clock import SystemClock
from clawdforge.core.ids import new_id
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.ports import Store, Tx
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.stores import open_store
from clawdforge.wire.event import EventType
from clawdforge.wire.session import Retention
from clawdforge.wire.turn import Outcome, TurnState

NOW = SystemClock().now()
WORDS = [f"word{number}" for number in range(2000)]
AIM = 1.5
SEARCH_AIM_MS = 50.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", default="10,1000,10000")
    parser.add_argument("--sessions", default="100,5000,100000")
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    lengths = [int(part) for part in args.messages.split(",")]
    numbers = [int(part) for part in args.sessions.split(",")]
    by_length = {length: measure_length(length, args.count) for length in lengths}
    print_table("ms of CPU per call, by messages in the session", by_length)
    by_number = {number: measure_number(number, args.count) for number in numbers}
    print_table("ms of CPU per call, by sessions of the app", by_number)
    print_verdict("undo, longest history to shortest", by_length, "undo")
    print_verdict("a list page, most sessions to fewest", by_number, "list a page")
    number = 5000 if 5000 in by_number else numbers[-1]
    worst = max(cost for name, cost in by_number[number].items() if name.startswith("search"))
    held = verdict_word(worst < SEARCH_AIM_MS)
    print(f"search at {number:,} sessions: {worst:.1f} ms; aim < {SEARCH_AIM_MS:g} ms: {held}")


def measure_length(length: int, count: int) -> dict[str, float]:
    """Several sessions of one length, so that each undo finds it nearly whole."""
    few = max(2, min(count, 2 * count * 10 // length))
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        data = Path(folder) / "data"
        lived, imported = asyncio.run(seed_lengths(data, length, few))
        with server(data, CLAWDFORGE_LOG_LEVEL="warning") as (http, pid):
            meter = Meter(http, pid, count)
            names, titles = cycle(lived), iter(range(1 << 30))
            others = cycle(imported)
            found = {"undo": meter.measure(lambda: post(http, next(names), "undo"), limit=few * 3)}
            found["undo, imported"] = meter.measure(lambda: post(http, next(others), "undo"), limit=few * 3)
            found["redo"] = meter.measure(lambda: post(http, next(names), "redo"), limit=few)
            found["retry"] = meter.measure(lambda: post(http, next(names), "retry"), limit=few)
            found["rename"] = meter.measure(lambda: rename(http, next(names), next(titles)))
            found["open"] = meter.measure(lambda: open_session(http, next(names)))
            found["list a page"] = meter.measure(lambda: get(http, "/sessions", limit=50))
            found["search"] = meter.measure(lambda: get(http, "/search", q="word7 word9", limit=50))
            found["clear"] = meter.measure(lambda: post(http, lived[0], "clear"), limit=1)
            found["fork"] = meter.measure(lambda: post(http, imported[0], "fork"), limit=1)
            found["export"] = meter.measure(lambda: get(http, f"/sessions/{lived[1]}/export"), limit=3)
    return found


def measure_number(number: int, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        data = Path(folder) / "data"
        sessions = asyncio.run(seed_number(data, number))
        with server(data, CLAWDFORGE_LOG_LEVEL="warning") as (http, pid):
            meter = Meter(http, pid, count)
            some = random.Random(1).sample(sessions, min(number, count))  # noqa: S311 - only a sample
            names, titles = cycle(some), iter(range(1 << 30))
            cursor = get(http, "/sessions", limit=50).json()["next"]
            return {
                "list a page": meter.measure(lambda: get(http, "/sessions", limit=50)),
                "list the second": meter.measure(lambda: get(http, "/sessions", limit=50, cursor=cursor)),
                "open": meter.measure(lambda: open_session(http, next(names))),
                "rename": meter.measure(lambda: rename(http, next(names), next(titles))),
                "search one word": meter.measure(lambda: get(http, "/search", q="word7", limit=50)),
                "search two words": meter.measure(lambda: get(http, "/search", q="word7 word9", limit=50)),
                "search every text": meter.measure(lambda: get(http, "/search", q="common", limit=50)),
                "search a beginning": meter.measure(lambda: get(http, "/search", q="common wor", limit=50)),
                "search nothing": meter.measure(lambda: get(http, "/search", q="absent", limit=50)),
                "undo": meter.measure(lambda: post(http, next(names), "undo"), limit=len(some)),
                "retry": meter.measure(lambda: post(http, next(names), "retry"), limit=len(some)),
            }


class Meter:
    """The server's CPU for a number of calls."""

    def __init__(self, http: httpx2.Client, pid: int, count: int) -> None:
        self._count = count
        self._clock = (~pid << 3) | 2  # the clock of that process
        for _ in range(50):
            get(http, "/sessions", limit=1)

    def measure(self, call: Callable[[], Any], limit: int | None = None) -> float:
        count = min(self._count, limit or self._count)
        begun = time.clock_gettime(self._clock)
        for _ in range(count):
            call()
        return (time.clock_gettime(self._clock) - begun) * 1000 / count


def get(http: httpx2.Client, path: str, **params: Any) -> httpx2.Response:
    return check(http.get(path, params=params))


def post(http: httpx2.Client, session_id: str, what: str) -> httpx2.Response:
    return check(http.post(f"/sessions/{session_id}/{what}", json={}))


def rename(http: httpx2.Client, session_id: str, number: int) -> httpx2.Response:
    return check(http.patch(f"/sessions/{session_id}", json={"title": f"title {number}"}))


def open_session(http: httpx2.Client, session_id: str) -> None:
    get(http, f"/sessions/{session_id}")
    get(http, f"/sessions/{session_id}/messages", limit=50)


def check(reply: httpx2.Response) -> httpx2.Response:
    assert reply.status_code == 200, reply.text
    return reply


async def seed_lengths(data: Path, length: int, count: int) -> tuple[list[str], list[str]]:
    store = await open_store(data, SystemClock())
    cwd = data.with_name("workspace")  # of all of them; a fork looks whether it is there
    cwd.mkdir(exist_ok=True)
    try:
        lived = [await add(store, [length], cwd, imported=False) for _ in range(count)]
        imported = [await add(store, [length], cwd, imported=True) for _ in range(count)]
        return [ids[0] for ids in lived], [ids[0] for ids in imported]
    finally:
        await store.close()


async def seed_number(data: Path, number: int) -> list[str]:
    store = await open_store(data, SystemClock())
    cwd = data.with_name("workspace")  # of all of them; a fork looks whether it is there
    cwd.mkdir(exist_ok=True)
    try:
        found: list[str] = []
        while len(found) < number:
            few = min(100, (number - len(found)) // 5)
            jobs = [add(store, [4] * 5, cwd, imported=False) for _ in range(few)]
            for ids in await asyncio.gather(*jobs):  # one commit, but small jobs: each is undone by itself
                found += ids
        return found
    finally:
        await store.close()


async def add(store: Store, lengths: list[int], cwd: Path, *, imported: bool) -> list[str]:
    ids = [new_id() for _ in lengths]

    def work(tx: Tx) -> None:
        for session_id, length in zip(ids, lengths, strict=True):
            fill(tx, session_id, length, cwd, imported=imported)

    await store.write(LOCAL_APP, work)
    return ids


def fill(tx: Tx, session_id: str, length: int, cwd: Path, *, imported: bool) -> None:
    tx.add_session(
        SessionRow(
            app_name=LOCAL_APP,
            session_id=session_id,
            agent="demo",
            cwd=str(cwd),
            created_at=NOW,
            updated_at=NOW,
            retention=Retention.KEEP,
            title=session_id[:8],
        )
    )
    for number, text in enumerate(texts(session_id, length)):
        turn = 0 if imported else number // 2 + 1
        role = "assistant" if number % 2 else "user"
        tx.add_message(MessageRow(session_id=session_id, role=role, content=text, ts=NOW, turn=turn))
        if turn and not number % 2:
            tx.add_turn(make_turn(session_id, turn, text))
    tx.change_session(session_id, last_turn=0 if imported else length // 2)
    tx.append(session_id, [draft(EventType.SESSION_CREATED, None, NOW, {"imported": length})])


def texts(seed: str, count: int) -> Iterator[str]:
    """About 400 characters each, all with one word in common."""
    rng = random.Random(seed)  # noqa: S311 - the same texts each time
    for _ in range(count):
        yield " ".join(["common", *rng.choices(WORDS, k=50)])


def make_turn(session_id: str, index: int, prompt: str) -> TurnRow:
    return TurnRow(
        session_id=session_id,
        turn_index=index,
        state=TurnState.ENDED,
        outcome=Outcome.COMPLETED,
        prompt=prompt,
        queued_at=NOW,
        started_at=NOW + index,
        ended_at=NOW + index,
    )


def print_table(title: str, columns: dict[int, dict[str, float]]) -> None:
    sizes = list(columns)
    print(f"\n{title}\n{'':20}" + "".join(f"{size:>12,}" for size in sizes) + f"{'last/first':>12}")
    for name in columns[sizes[0]]:
        costs = [columns[size][name] for size in sizes]
        print(f"{name:20}" + "".join(f"{cost:12.2f}" for cost in costs) + f"{costs[-1] / costs[0]:12.2f}")


def print_verdict(title: str, columns: dict[int, dict[str, float]], name: str) -> None:
    costs = [column[name] for column in columns.values()]
    ratio = costs[-1] / costs[0]
    print(f"{title}: {ratio:.2f}; aim <= {AIM}: {verdict_word(ratio <= AIM)}")


def verdict_word(held: bool) -> str:
    return "held" if held else "MISSED"


if __name__ == "__main__":
    main()
