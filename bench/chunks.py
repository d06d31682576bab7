"""What a chunk of an answer costs, and its way to one, a hundred and a thousand readers, by two versions.

    .venv/bin/python -m bench.chunks --other DIR [--blocks 6] [--chunks 30000]

DIR is a checkout of the version before. Both serve in one run, in alternating blocks, so that a busy machine
shows in both alike; what counts is the ratio of neighbouring blocks.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from bench.alone import read_along
from bench.beside import SETTLED_SECS, show_heads, show_pair
from bench.contenders import OURS, PLENTY, Contender, Forge
from bench.contests import close_desks, open_desk, read_stamps
from bench.kit import cpu_secs, describe_here, server
from bench.turn import FORMS, sse_chunks
from proofs.kit.report import commit
from proofs.kit.server import ROOT

READERS: Final = ((100, 2_000), (1000, 200))
STAMPS: Final = 40
Found = dict[str, list[float]]


@dataclass
class Version:
    http: httpx2.Client
    ours: Contender
    found: Found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--other", type=Path, required=True)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--chunks", type=int, default=30_000)
    args = parser.parse_args()
    other = args.other.resolve()
    print(describe_here())
    print(f"before: {commit(other)} of {other}")
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder, ExitStack() as stack:
        versions = [
            start(stack, Path(folder) / name, root) for name, root in (("before", other), ("now", ROOT))
        ]
        for block in range(args.blocks):
            for version in versions[:: -1 if block % 2 else 1]:
                measure(version, args.chunks)
    show_heads("before", "now")
    before, now = (version.found for version in versions)
    for name in before:
        show_pair(name, before[name], now[name])
    print(f"load at the end {os.getloadavg()[0]:.1f}")


def start(stack: ExitStack, data: Path, root: Path) -> Version:
    http, pid = stack.enter_context(server(data, PYTHONPATH=str(root / "src"), **PLENTY))
    headers = {"Authorization": http.headers["Authorization"]}
    ours = Contender(OURS, str(http.base_url).rstrip("/"), pid, Forge(headers), data)
    return Version(http, ours, {})


def measure(version: Version, chunks: int) -> None:
    found, pid = version.found, version.ours.pid
    for form in FORMS:
        before = cpu_secs(pid)
        rate = sse_chunks(version.http, chunks, form)
        time.sleep(SETTLED_SECS)
        found.setdefault(f"{form}: CPU of a chunk, µs", []).append((cpu_secs(pid) - before) / chunks * 1e6)
        found.setdefault(f"{form}: chunks a second", []).append(rate)
    for readers, count in READERS:
        _, cpu = asyncio.run(read_along(version.ours, version.http, readers, count))
        name = f"{readers:,} readers: chunks for a second of CPU"
        found.setdefault(name, []).append(readers * count / cpu)
    waits = asyncio.run(stamp(version.ours))
    found.setdefault("from the agent's write to the reader, p50, ms", []).append(statistics.median(waits))


async def stamp(ours: Contender) -> list[float]:
    desk = await open_desk(ours, stamping=True)
    waits = await read_stamps(desk, STAMPS)
    await close_desks({0: desk})
    return waits


if __name__ == "__main__":
    main()
