"""How much memory the server takes: many sessions, many live agents, a huge line, a huge answer.

.venv/bin/python -m bench.memory [--sessions 10000] [--agents 20] [--line 200000000] [--answer 1000000000]
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import psutil

from bench.kit import new_session, server

MB = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--agents", type=int, default=20)
    parser.add_argument("--line", type=int, default=200 * MB)
    parser.add_argument("--answer", type=int, default=1000 * MB)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        limits = {
            "CLAWDFORGE_MAX_LIVE_SESSIONS": "1000000",
            "CLAWDFORGE_MAX_LIVE_AGENTS": str(args.agents),
        }
        with server(Path(folder) / "data", **limits) as (http, pid):
            process = psutil.Process(pid)
            print(f"{'just started':40} {rss(process):8.1f} MB")
            sessions = [new_session(http) for _ in range(args.sessions)]
            print(f"{f'{args.sessions} sessions':40} {rss(process):8.1f} MB")
            for session in sessions[: args.agents]:
                turn(http, session, "echo hello")
            live = http.get("/healthz").json()["live_agents"]
            print(f"{f'and {live} live agents':40} {rss(process):8.1f} MB")
            first = sessions[0]
            print_peak("a line of", args.line, process, lambda: turn(http, first, f"bytes {args.line}"))
            chunk = 10_000
            flood = f"flood {args.answer // chunk} {chunk}"
            print_peak("an answer of", args.answer, process, lambda: turn(http, first, flood))


def rss(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / MB


def turn(http: httpx2.Client, session: str, prompt: str) -> None:
    """Run a turn without holding its answer here."""
    with http.stream("POST", f"/sessions/{session}/turn", json={"prompt": prompt}) as reply:
        for _ in reply.iter_raw():
            pass
        assert reply.status_code == 200, reply.status_code


def print_peak(what: str, size: int, process: psutil.Process, call: Callable[[], None]) -> None:
    """Print how far the server's memory rises while something large passes through it."""
    before, done, peak = rss(process), threading.Event(), [rss(process)]

    def watch() -> None:
        while not done.is_set():
            peak[0] = max(peak[0], rss(process))
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    call()
    took = time.perf_counter() - start
    done.set()
    watcher.join()
    print(f"{f'{what} {size // MB} MB moves it by':40} {peak[0] - before:8.1f} MB   in {took:.1f} s")


if __name__ == "__main__":
    main()
