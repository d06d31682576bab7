"""Which functions the event loop of a server calls for a turn and for a short request, and how often.

    .venv/bin/python -m bench.called [--turns 200] [--reads 500] [--functions 40]

By cProfile, in the middle of many of them. It makes each call look dearer than it is, so only the counts are
printed: they are nearly the same on every machine, however busy that is. A coroutine counts anew each time it
goes on. What other threads call is not among them.
"""

import argparse
import os
import pstats
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.beside import PLENTY, SETTLED_SECS
from bench.kit import describe_here, new_session, server
from proofs.kit.server import ROOT

WARM: Final = 20
PAUSE_SECS: Final = 0.02
WITHIN_SECS: Final = 30.0
OURS: Final = f"{ROOT / 'src' / 'clawdforge'}/"
PACKAGES: Final = "site-packages/"
BUILT_IN: Final = "~"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--reads", type=int, default=500)
    parser.add_argument("--functions", type=int, default=40)
    args = parser.parse_args()
    print(describe_here())
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        base = Path(folder)
        quiet = {"CLAWDFORGE_LOG_LEVEL": "error", **PLENTY}
        with server(base / "data", ("bench.profiled", str(base / "calls")), **quiet) as (http, pid):
            session = new_session(http)

            def read() -> None:
                assert http.get(f"/sessions/{session}").status_code == 200

            def prompt() -> None:
                reply = http.post(f"/sessions/{session}/turn", json={"prompt": "echo hello"})
                assert reply.status_code == 200, reply.text
                time.sleep(PAUSE_SECS)

            for what, once, times in (("turn", prompt, args.turns), ("GET", read, args.reads)):
                found = count_calls(base / "calls", pid, once, times)
                show(what, found, times, args.functions)


def count_calls(file: Path, pid: int, once: Callable[[], object], times: int) -> dict[Any, int]:
    """By file, line and name."""
    for _ in range(WARM):
        once()
    time.sleep(SETTLED_SECS)
    file.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    for _ in range(times):
        once()
    os.kill(pid, signal.SIGUSR1)
    end = time.monotonic() + WITHIN_SECS
    while not file.exists():
        assert time.monotonic() < end, "the server did not write what it had counted"
        time.sleep(SETTLED_SECS)
    stats: dict[Any, Any] = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]  # typeshed lacks it
    return {where: counts[1] for where, counts in stats.items()}


def show(what: str, calls: dict[Any, int], times: int, functions: int) -> None:
    rooms: Counter[str] = Counter()
    for (file, _, _), count in calls.items():
        rooms[room_of(file)] += count
    built_in = rooms.pop(BUILT_IN, 0)
    print(f"\n{what}: {rooms.total() / times:.0f} calls, and {built_in / times:.0f} of what is built in")
    for room, count in rooms.most_common():
        if count >= times / 2:
            print(f"{count / times:9.1f}  {room}")
    print()
    for file, line, name in sorted(calls, key=lambda where: -calls[where])[:functions]:
        print(f"{calls[file, line, name] / times:9.1f}  {room_of(file)} {Path(file).name}:{line} {name}")


def room_of(file: str) -> str:
    if file.startswith(OURS):
        return "/".join(file.removeprefix(OURS).split("/")[:2])
    if PACKAGES in file:
        return file.partition(PACKAGES)[2].partition("/")[0]
    return Path(file).parent.name if "/" in file else file


if __name__ == "__main__":
    main()
