"""The first text of a fresh session: with a spare agent, without one, and in a session whose agent is awake.

    .venv/bin/python -m bench.spare [--sessions 40] [--agent NAME]

Two servers take turns, one of them without spares. Timed from the prompt to the first text at a reader of the
stream, in ms; beside it from the request that makes the session. Before each session there is a pause, in
which a spare can be started, as between two sessions of a person. `--agent` names one that is installed here.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import httpx2

from bench.kit import server

PAUSE_SECS = 1.0
WARM = 3
HOW = ("with a spare", "without", "awake")
Times = dict[str, list[tuple[float, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--agent", default="scripted")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="clawdforge-bench-", dir="/var/tmp") as folder,
        server(Path(folder, "spare"), CLAWDFORGE_SPARE_AGENTS="1") as (spare, _),
        server(Path(folder, "none"), CLAWDFORGE_SPARE_AGENTS="0") as (none, _),
    ):
        times: Times = {how: [] for how in HOW}
        for number in range(args.sessions + WARM):
            found = measure(spare, none, args.agent)
            if number >= WARM:
                for how, pair in found.items():
                    times[how].append(pair)
    print(f"{'':14} {'from the prompt':>16} {'p95':>8} {'from the session':>18}   p50 of {args.sessions}")
    for how, pairs in times.items():
        prompted, made = (sorted(pair[part] * 1e3 for pair in pairs) for part in (0, 1))
        worst = prompted[min(len(prompted) - 1, int(len(prompted) * 0.95))]
        print(f"{how:14} {statistics.median(prompted):16.1f} {worst:8.1f} {statistics.median(made):18.1f}")


def measure(spare: httpx2.Client, none: httpx2.Client, agent: str) -> dict[str, tuple[float, float]]:
    found = {}
    for how, http in zip(HOW, (spare, none), strict=False):
        time.sleep(PAUSE_SECS)
        begun = time.perf_counter()
        reply = http.post("/sessions", json={"agent": agent}).raise_for_status()
        session = str(reply.json()["session_id"])
        prompted = time.perf_counter()
        first = say(http, session)
        found[how] = (first - prompted, first - begun)
    time.sleep(PAUSE_SECS)
    begun = time.perf_counter()
    found[HOW[-1]] = (say(none, session) - begun,) * 2
    return found


def say(http: httpx2.Client, session: str) -> float:
    """When the first text came."""
    first = None
    wanted = {"Accept": "text/event-stream"}
    body = {"prompt": "echo hello"}
    with http.stream("POST", f"/sessions/{session}/turn?form=compact", json=body, headers=wanted) as reply:
        for line in reply.iter_lines():
            if first is None and line.startswith("data:") and json.loads(line[5:]).get("type") == "text":
                first = time.perf_counter()
    assert first is not None, "the turn had no text"
    return first


if __name__ == "__main__":
    main()
