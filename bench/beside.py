"""Turns at several servers in alternating blocks of one run: a busy machine shows in all of them alike."""

import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx2

from bench.counted import read_counts
from bench.kit import cpu_secs, new_session, server

CHUNKS: Final = 500
"""That each session says in a block."""
LEAST_TURNS: Final = 60
"""Of all sessions, in a block."""
WARM_BLOCKS: Final = 2
PAUSE_SECS: Final = 0.02
SETTLED_SECS: Final = 0.2
"""After a block: what is done behind the last answers is a part of what they cost."""
WITHIN_SECS: Final = 10.0
AWAITED: Final = ("statements", "reads", "commits", "hops")
PLENTY: Final = {
    **dict.fromkeys(("CLAWDFORGE_MAX_LIVE_AGENTS", "CLAWDFORGE_APP_AGENTS"), "100"),
    **dict.fromkeys(("CLAWDFORGE_APP_REQUESTS_PER_SEC", "CLAWDFORGE_APP_OPEN_REQUESTS"), "10000"),
}
"""Shares are not what is measured."""


@dataclass
class Cost:
    """Of each block: milliseconds of the server's processor for a turn, and turns in a second. Of each turn:
    milliseconds until its answer."""

    cpu: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


def cost_turns(
    servers: Mapping[str, tuple[httpx2.Client, int]], sessions: int, blocks: int
) -> dict[str, Cost]:
    """With so many sessions at each server, of which each has one turn after another."""
    made = {name: [new_session(http) for _ in range(sessions)] for name, (http, _) in servers.items()}
    found = {name: Cost() for name in servers}
    each = -(-LEAST_TURNS // sessions)
    with ThreadPoolExecutor(sessions) as pool:
        for block in range(WARM_BLOCKS + blocks):
            for name in sorted(servers, reverse=bool(block % 2)):
                http, pid = servers[name]
                before, began = cpu_secs(pid), time.perf_counter()
                ran = list(pool.map(lambda one, http=http: run_turns(http, one, each), made[name]))
                took = time.perf_counter() - began
                time.sleep(SETTLED_SECS)
                if block >= WARM_BLOCKS:
                    times = [time for some in ran for time in some]
                    found[name].cpu.append((cpu_secs(pid) - before) / len(times) * 1e3)
                    found[name].rates.append(len(times) / took)
                    found[name].times += times
    for name, (http, _) in servers.items():
        for session in made[name]:
            http.delete(f"/sessions/{session}")
    return found


def cost_chunks(
    servers: Mapping[str, tuple[httpx2.Client, int]], sessions: int, blocks: int
) -> dict[str, Cost]:
    """Likewise of agents that all speak as fast as they are heard: each cost is that of a thousand chunks."""
    made = {name: [new_session(http) for _ in range(sessions)] for name, (http, _) in servers.items()}
    found = {name: Cost() for name in servers}
    thousands = sessions * CHUNKS / 1e3
    with ThreadPoolExecutor(sessions) as pool:
        for block in range(WARM_BLOCKS + blocks):
            for name in sorted(servers, reverse=bool(block % 2)):
                http, pid = servers[name]
                before, began = cpu_secs(pid), time.perf_counter()
                list(pool.map(lambda one, http=http: run_turn(http, one, f"flood {CHUNKS} 11"), made[name]))
                took = time.perf_counter() - began
                time.sleep(SETTLED_SECS)
                if block >= WARM_BLOCKS:
                    found[name].cpu.append((cpu_secs(pid) - before) / thousands * 1e3)
                    found[name].rates.append(thousands * 1e3 / took)
    for name, (http, _) in servers.items():
        for session in made[name]:
            http.delete(f"/sessions/{session}")
    return found


def count_cheapest_turn(base: Path, turns: int, **env: str) -> dict[str, int]:
    """What the cheapest of some turns takes in exact numbers: now and then one is beside work that is done
    once a second."""
    base.mkdir(exist_ok=True)
    tally = base / "counts"
    found: list[dict[str, int]] = []
    with server(base / "data", ("bench.counted", str(tally)), **env) as (http, _pid):
        path = f"/sessions/{new_session(http)}/turn"
        for _ in range(turns):
            before = wait_until_quiet(tally)
            reply = http.post(path, json={"prompt": "echo hello"})
            assert reply.status_code == 200, reply.text
            after = wait_until_quiet(tally)
            found.append({name: after[name] - before[name] for name in before})
    return {name: min(each[name] for each in found) for name in found[0]}


def wait_until_quiet(tally: Path) -> dict[str, int]:
    """The counts when a look shows what the one before it showed, or after a while anyway."""
    last, end = read_counts(tally), time.monotonic() + WITHIN_SECS
    while time.monotonic() < end:
        time.sleep(0.1)
        now = read_counts(tally)
        if all(now[name] == last[name] for name in AWAITED):
            return now
        last = now
    return last


def run_turns(http: httpx2.Client, session: str, count: int) -> list[float]:
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        run_turn(http, session, "echo hello")
        times.append((time.perf_counter() - begun) * 1e3)
        time.sleep(PAUSE_SECS)
    return times


def run_turn(http: httpx2.Client, session: str, prompt: str) -> None:
    reply = http.post(f"/sessions/{session}/turn", json={"prompt": prompt})
    assert reply.status_code == 200, reply.text


def show_pair(what: str, one: Sequence[float], other: Sequence[float], aim: str = "") -> None:
    """Medians, and that of the ratios of neighbouring blocks with its quartiles."""
    ratios = [second / first for first, second in zip(one, other, strict=False) if first]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3 or [0.0] * 3
    first, second = statistics.median(one), statistics.median(other)
    print(f"{what:44}{first:10.2f}{second:10.2f}{middle:9.3f}  {low:.2f} to {high:.2f}  {aim}", flush=True)


def show_costs(what: str, one: Cost, other: Cost, aim: str) -> None:
    show_pair(f"{what}: CPU of a turn, ms", one.cpu, other.cpu, aim)
    show_pair(f"{what}: a turn takes, ms", one.times, other.times)
    show_pair(f"{what}: turns a second", one.rates, other.rates)


def show_heads(one: str, other: str) -> None:
    print(f"{'':44}{one:>10}{other:>10}{'ratio':>9}  quartiles     aim")
