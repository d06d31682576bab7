"""How long the start of an agent takes at each level of containment, up to its first answer.

    .venv/bin/python -m bench.cold_start [--starts 40]

The levels take turns, so that a busy machine slows all of them alike. `launcher` is the time until the
agent's program runs, `answer` that until it has answered `initialize`, both in ms; `cpu` is the work of the
whole start and end, which other programs on the machine disturb less. `users` is `auto` for an app that has a
user of its own, where the benchmark runs as root.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.drivers.folders.ownership import Ownership
from clawdforge.drivers.processes.containment import probe
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.user_wall import try_users
from clawdforge.scripted import command

LEVELS = ("off", "auto", "full")
USERS = "users"
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-", dir="/var/tmp") as folder:
        times = asyncio.run(measure(Path(folder), args.starts))
    print(
        f"{'level':6} {'launcher':>9} {'p95':>8} {'answer':>9} {'p95':>8} {'cpu':>8}   p50 of {args.starts}"
    )
    for level, found in times.items():
        launched, answered, worked = (sorted(one[index] * 1e3 for one in found) for index in range(3))
        middle = [statistics.median(each) for each in (launched, answered, worked)]
        print(
            f"{level:6} {middle[0]:9.1f} {percentile(launched):8.1f} "
            f"{middle[1]:9.1f} {percentile(answered):8.1f} {middle[2]:8.1f}"
        )


def percentile(ordered: list[float]) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


async def measure(folder: Path, starts: int) -> dict[str, list[tuple[float, float, float]]]:
    spec = AgentSpec(name="scripted", driver="acp", command=tuple(command()))
    containment = try_users(probe("auto"), "auto", folder)
    levels = (*LEVELS, USERS) if containment.uid else LEVELS
    for level in levels:
        for place in (folder / "homes" / level / ".tmp", folder / "workspaces" / level):
            place.mkdir(parents=True)
    spawner = Spawner(containment, folder, "bench")
    ownership = Ownership.find(folder, containment, "auto")
    times: dict[str, list[tuple[float, float, float]]] = {level: [] for level in levels}
    for _ in range(starts):
        for level in levels:
            times[level].append(await start_once(spawner, ownership, spec, folder, level))
    return times


async def start_once(
    spawner: Spawner, ownership: Ownership, spec: AgentSpec, folder: Path, level: str
) -> tuple[float, float, float]:
    home, workspace = folder / "homes" / level, folder / "workspaces" / level
    app, sandbox = ("bench", "auto") if level == USERS else (LOCAL_APP, level)
    begun, before = time.perf_counter(), cpu_seconds()
    runs_as = await ownership.choose_user(app, home, workspace, sandbox, ())
    process = await spawner.spawn(
        spec.command,
        cwd=workspace,
        home=home,
        env=agent_env(spec, home, os.environ),
        tag="bench",
        needs=Needs.of(spec),
        sandbox=sandbox,
        runs_as=runs_as,
    )
    launched = time.perf_counter() - begun
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    await process.stdout.readline()
    answered = time.perf_counter() - begun
    await process.close(eof_grace=1.0)
    return launched, answered, cpu_seconds() - before


def cpu_seconds() -> float:
    """What this process and its ended children have worked."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
