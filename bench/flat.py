"""What undo, redo, clear and fork take by the length of a history, and what another session waits meanwhile.

    .venv/bin/python -m bench.flat [--messages 10,1000,100000] [--count 5]

The middle of some calls, in milliseconds by the clock, when nobody else asks for anything; the same calls
again beside two clients of another session, and the longest that one of these waited; and how many jobs kept
the writer for more than 50 ms in all of it. It wants a machine without other work, and takes some minutes.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from bench.history import get, post
from bench.kit import new_session, server
from bench.neighbours import BUCKET, post_body, repeating

AIM: Final = 1.5
AIM_MS: Final = 50.0
COPIED: Final = "fork"
"""What it copies grows with the history; of all else nothing has to."""
NAMES: Final = ("undo", "redo", "undo all", "redo all", "fork", "clear")
ROLES: Final = ("user", "assistant")
TURNS: Final = 10_000
"""That one undo takes back at most."""


@dataclass
class Found:
    """Of one operation at one length."""

    took: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    slow_jobs: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", default="10,1000,100000")
    parser.add_argument("--count", type=int, default=5)
    args = parser.parse_args()
    lengths = [int(part) for part in args.messages.split(",")]
    print_table({length: measure(length, args.count) for length in lengths})


def measure(length: int, count: int) -> dict[str, Found]:
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        data = Path(folder) / "data"
        with server(data, CLAWDFORGE_LOG_LEVEL="warning") as (http, _):
            long, other = make_long(http, length), new_session(http)
            post_body(http, f"/sessions/{other}/turn", {"prompt": "echo warm"})
            operator = {"Authorization": f"Bearer {(data / 'admin.token').read_text().strip()}"}
            found = {name: Found() for name in NAMES}
            do_all(http, long, {})  # statements are made known
            for _ in range(count):
                do_all(http, long, {name: one.took for name, one in found.items()})
            for name, work in operations(http, long):
                slow = count_slow(http, operator)
                with (
                    repeating(http, lambda mine: get(mine, f"/sessions/{other}")) as gets,
                    repeating(http, lambda mine: run_turn(mine, other)) as turns,
                ):
                    work()
                found[name].waits = [*gets, *turns]
                found[name].slow_jobs = count_slow(http, operator) - slow
    return found


def make_long(http: httpx2.Client, length: int) -> str:
    said = [{"role": ROLES[number % 2], "content": f"message {number}"} for number in range(length)]
    return str(post_body(http, "/sessions/import", {"messages": said, "agent": "scripted"})["session_id"])


def operations(http: httpx2.Client, long: str) -> list[tuple[str, Callable[[], Any]]]:
    """Each leaves the long session as it was; what is cleared is the fork that was made before."""
    forks: list[str] = []
    all_turns = {"turns": TURNS}
    return [
        ("undo", lambda: post(http, long, "undo")),
        ("redo", lambda: post(http, long, "redo")),
        ("undo all", lambda: post_body(http, f"/sessions/{long}/undo", all_turns)),
        ("redo all", lambda: post(http, long, "redo")),
        ("fork", lambda: forks.append(str(post(http, long, "fork").json()["session_id"]))),
        ("clear", lambda: post(http, forks[-1], "clear")),
    ]


def do_all(http: httpx2.Client, long: str, took: dict[str, list[float]]) -> None:
    for name, work in operations(http, long):
        begun = time.perf_counter()
        work()
        took.setdefault(name, []).append((time.perf_counter() - begun) * 1000)


def run_turn(http: httpx2.Client, session: str) -> None:
    post_body(http, f"/sessions/{session}/turn", {"prompt": "echo hi"})


def count_slow(http: httpx2.Client, operator: dict[str, str]) -> int:
    counts = {
        bound: int(count) for bound, count in BUCKET.findall(http.get("/metrics", headers=operator).text)
    }
    return counts["+Inf"] - counts["0.05"]


def print_table(by_length: dict[int, dict[str, Found]]) -> None:
    """As docs/explain/speed.md has it."""
    lengths = list(by_length)
    heads = [f"{length:,} messages, ms" for length in lengths]
    print(f"| | {' | '.join(heads)} | last / first | longest wait of another session, ms | jobs > 50 ms |")
    print("|---" * (len(lengths) + 4) + "|")
    missed = []
    for name in NAMES:
        each = [by_length[length][name] for length in lengths]
        took = [statistics.median(one.took) for one in each]
        ratio, wait = took[-1] / took[0], max(max(one.waits) for one in each)
        jobs = sum(one.slow_jobs for one in each)
        cells = " | ".join(f"{one:.1f}" for one in took)
        print(f"| {name} | {cells} | {ratio:.2f} | {wait:.0f} | {jobs} |")
        if (ratio > AIM and name != COPIED) or wait > AIM_MS or jobs:
            missed.append(name)
    what = f"at most {AIM} times but for {COPIED}, no wait and no job beyond {AIM_MS:g} ms"
    print(f"\n{what}: {'MISSED by ' + ', '.join(missed) if missed else 'held'}")


if __name__ == "__main__":
    main()
