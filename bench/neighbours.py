"""What one long history costs its own callers, and how long another session waits meanwhile.

    .venv/bin/python -m bench.neighbours [--messages 10,1000,100000]

Import, undo and redo of everything, fork, export and clear of one session, over HTTP. Meanwhile two other
clients of the same app ask for another session and run tiny turns in it, again and again. Their times are
shown alone and beside each operation: by the clock, so a busy machine shows in all of them alike. Jobs that
kept the writer longer than 50 ms by the clock are counted from the server's own metric; those that computed
for so long are warned of by the server itself.
"""

import argparse
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from bench.history import get, post
from bench.kit import new_session, server

T = TypeVar("T")
BUCKET = re.compile(r'clawdforge_writer_job_seconds_bucket\{le="(0\.05|\+Inf)"\} (\d+)')
ALONE_SECS = 3.0
PAUSE_SECS = 0.002
COLUMNS = ("took ms", "GETs", "p50", "p99", "max", "turns", "p50", "p99", "max", "jobs > 50 ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", default="10,1000,100000")
    lengths = [int(part) for part in parser.parse_args().messages.split(",")]
    print(f"{'':24}" + "".join(f"{name:>{max(8, len(name) + 2)}}" for name in COLUMNS))
    for length in lengths:
        measure(length)


def measure(length: int) -> None:
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        data = Path(folder) / "data"
        roles = ("user", "assistant")
        said = [{"role": roles[number % 2], "content": f"message {number}"} for number in range(length)]
        with server(data, CLAWDFORGE_LOG_LEVEL="warning") as (http, _):
            run = Run(http, new_session(http), length, (data / "admin.token").read_text().strip())
            run.show("nothing else", lambda: time.sleep(ALONE_SECS))
            body = {"messages": said, "agent": "scripted"}
            made = run.show("import", lambda: post_body(http, "/sessions/import", body))
            long = str(made["session_id"])
            run.show("undo all", lambda: post_body(http, f"/sessions/{long}/undo", {"turns": 10_000}))
            run.show("redo all", lambda: post(http, long, "redo"))
            run.show("fork", lambda: post(http, long, "fork"))
            run.show("export", lambda: get(http, f"/sessions/{long}/export"))
            run.show("clear", lambda: post(http, long, "clear"))
            run.show("rows and index after", lambda: time.sleep(ALONE_SECS))


class Run:
    """One server; each operation is done once, beside clients of another session."""

    def __init__(self, http: httpx2.Client, other: str, length: int, admin_token: str) -> None:
        self._http = http
        self._other = other
        self._length = length
        self._operator = {"Authorization": f"Bearer {admin_token}"}
        self._run_turn(http)  # its agent runs from now on

    def show(self, name: str, work: Callable[[], T]) -> T:
        slow = self._slow_jobs()
        path = f"/sessions/{self._other}"
        with (
            repeating(self._http, lambda mine: get(mine, path)) as gets,
            repeating(
                self._http, lambda mine: post_body(mine, f"{path}/turn", {"prompt": "echo hi"})
            ) as turns,
        ):
            begun = time.perf_counter()
            result = work()
            took = (time.perf_counter() - begun) * 1000
        row = f"{took:9.0f}{_figures(gets)}{_figures(turns)}{self._slow_jobs() - slow:14}"
        print(f"{self._length:>8,} {name:15}{row}", flush=True)
        return result

    def _get(self, http: httpx2.Client) -> None:
        get(http, f"/sessions/{self._other}")

    def _run_turn(self, http: httpx2.Client) -> None:
        post_body(http, f"/sessions/{self._other}/turn", {"prompt": "echo hi"})

    def _slow_jobs(self) -> int:
        text = self._http.get("/metrics", headers=self._operator).text
        counts = {bound: int(count) for bound, count in BUCKET.findall(text)}
        return counts["+Inf"] - counts["0.05"]


def _figures(times: list[float]) -> str:
    found = sorted(times) or [0.0]
    middle, late = found[len(found) // 2], found[min(len(found) - 1, len(found) * 99 // 100)]
    return f"{len(times):8}{middle:8.1f}{late:8.1f}{found[-1]:8.1f}"


@contextmanager
def repeating(http: httpx2.Client, work: Callable[[httpx2.Client], object]) -> Iterator[list[float]]:
    """Milliseconds of each, until this is left; a client of its own does it, at least once."""
    times: list[float] = []
    ready, stopping = threading.Event(), threading.Event()

    def repeat() -> None:
        with httpx2.Client(base_url=http.base_url, headers=http.headers, timeout=600, verify=False) as mine:
            work(mine)
            ready.set()
            while not times or not stopping.is_set():
                begun = time.perf_counter()
                work(mine)
                times.append((time.perf_counter() - begun) * 1000)
                stopping.wait(PAUSE_SECS)

    thread = threading.Thread(target=repeat)
    thread.start()
    ready.wait()
    try:
        yield times
    finally:
        stopping.set()
        thread.join()


def post_body(http: httpx2.Client, path: str, body: dict[str, Any]) -> Any:
    reply = http.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


if __name__ == "__main__":
    main()
