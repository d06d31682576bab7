"""What one long history costs its own callers, and how long another session waits meanwhile.

    .venv/bin/python -m bench.neighbours [--messages 10,1000,100000]

Undo and redo of everything, fork, clear and export of one session, over HTTP. Meanwhile another client of the
same app renames another session, again and again. Its times are shown alone and beside each operation: by the
clock, so a busy machine shows in all of them alike. Jobs that kept the writer longer than 50 ms by the clock
are counted from the server's own metric; those that computed for so long are warned of by the server itself.
"""

import argparse
import asyncio
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from bench.history import add, get, post, rename
from bench.kit import server
from clawdforge.core.model import SystemClock
from clawdforge.stores import open_store

BUCKET = re.compile(r'clawdforge_writer_job_seconds_bucket\{le="(0\.05|\+Inf)"\} (\d+)')
ALONE_SECS = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", default="10,1000,100000")
    lengths = [int(part) for part in parser.parse_args().messages.split(",")]
    print(f"{'':24}{'took ms':>10}{'renames':>9}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'jobs > 50 ms':>14}")
    for length in lengths:
        measure(length)


def measure(length: int) -> None:
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        data = Path(folder) / "data"
        long, other = asyncio.run(seed(data, length))
        with server(data, CLAWDFORGE_LOG_LEVEL="warning") as (http, _):
            run = Run(http, other, length, (data / "admin.token").read_text().strip())
            run.show("nothing else", lambda: time.sleep(ALONE_SECS))
            run.show("undo all", lambda: post_all(http, long))
            run.show("redo all", lambda: post(http, long, "redo"))
            run.show("fork", lambda: post(http, long, "fork"))
            run.show("export", lambda: get(http, f"/sessions/{long}/export"))
            run.show("clear", lambda: post(http, long, "clear"))
            run.show("rows and index after", lambda: time.sleep(ALONE_SECS))


class Run:
    """One server; each operation is done once, beside a client that renames another session."""

    def __init__(self, http: httpx2.Client, other: str, length: int, admin_token: str) -> None:
        self._http = http
        self._other = other
        self._length = length
        self._operator = {"Authorization": f"Bearer {admin_token}"}

    def show(self, name: str, work: Callable[[], object]) -> None:
        slow = self._slow_jobs()
        with renaming(self._http, self._other) as times:
            begun = time.perf_counter()
            work()
            took = (time.perf_counter() - begun) * 1000
        found = sorted(times) or [0.0]
        middle, late = found[len(found) // 2], found[min(len(found) - 1, len(found) * 99 // 100)]
        row = f"{took:10.0f}{len(times):9}{middle:9.1f}{late:9.1f}{found[-1]:9.1f}"
        print(f"{self._length:>8,} {name:15}{row}{self._slow_jobs() - slow:14}", flush=True)

    def _slow_jobs(self) -> int:
        text = self._http.get("/metrics", headers=self._operator).text
        counts = {bound: int(count) for bound, count in BUCKET.findall(text)}
        return counts["+Inf"] - counts["0.05"]


@contextmanager
def renaming(http: httpx2.Client, session_id: str) -> Iterator[list[float]]:
    """Milliseconds of each rename, until this is left."""
    times: list[float] = []
    ready, stopping = threading.Event(), threading.Event()

    def work() -> None:
        with httpx2.Client(base_url=http.base_url, headers=http.headers, timeout=600) as mine:
            rename(mine, session_id, 0)
            ready.set()
            while not stopping.is_set():
                begun = time.perf_counter()
                rename(mine, session_id, len(times) + 1)
                times.append((time.perf_counter() - begun) * 1000)
                stopping.wait(0.002)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield times
    finally:
        stopping.set()
        thread.join()


def post_all(http: httpx2.Client, session_id: str) -> None:
    reply = http.post(f"/sessions/{session_id}/undo", json={"turns": 10_000})
    assert reply.status_code == 200, reply.text


async def seed(data: Path, length: int) -> tuple[str, str]:
    store = await open_store(data, SystemClock())
    try:
        long, other = await add(store, [length], imported=False), await add(store, [10], imported=False)
        return long[0], other[0]
    finally:
        await store.close()


if __name__ == "__main__":
    main()
