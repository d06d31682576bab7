"""Noise: one app is noisy in every way we know, and a quiet one beside it keeps its pace."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

from proofs.kit.report import Run
from proofs.kit.server import ROOT, Server, Stuck, until, zygote
from proofs.kit.stolen import read_machine_time
from proofs.noise.quiet import KINDS, Quiet, Times
from proofs.noise.way import Way
from proofs.noise.ways import WAYS

SHORT, FULL = 0, 20
ALONE_PART = 0.25
"""So much of that time the quiet app is alone before each way; noise is compared with the median of these."""

FLOOR_MS = 50.0
"""Below this nobody notices: an answer after 5 ms instead of 2 is no violation."""

MOST_TIMES = 2
MOST_MIB = 300
MIB = 1 << 20
BITE_SECS = 60.0
CALM_SECS, CALM_PART, CALM_WITHIN_SECS = 0.3, 0.1, 300.0
"""Below this part of a processor the server has nothing left to do."""

MOST_STOLEN, MOST_TRIES = 1.0, 3
"""Percent of a machine's time that its host gave to others: one pause of it is the slowest in a hundred."""

LINE_BYTES = 1 << 20
SAID = {
    re.compile(r"the event loop stood still for \d+ ms \((\d+) ms of CPU\)[^\"]*"): 100,
    re.compile(r"[\w.<>]+ kept the store's writer busy for (\d+) ms of CPU"): 50,
}
DEFAULT_SHARES = {
    "CLAWDFORGE_APP_REQUESTS_PER_SEC": "500",
    "CLAWDFORGE_APP_OPEN_REQUESTS": "256",
    "CLAWDFORGE_APP_READERS": "128",
    "CLAWDFORGE_APP_TURNS": "2000",
    "CLAWDFORGE_MAX_LIVE_SESSIONS": "1000",
    "CLAWDFORGE_MAX_CONNECTIONS": "1024",
    "CLAWDFORGE_MAX_CONNECTIONS_PER_PEER": "512",
}
"""The shares are what is being proved here."""


def prove(run: Run) -> None:
    """`size` is for how many seconds each way is noisy; with 0 no clock is looked at."""
    folder = run.folder / "workspaces"
    folder.mkdir(parents=True)
    sessions = "500" if run.size else "20"  # one app is to open all that it may
    env = {**DEFAULT_SHARES, "CLAWDFORGE_APP_SESSIONS": sessions, "CLAWDFORGE_WORKSPACE_ROOTS": str(folder)}
    chosen = [way for way in WAYS if not run.only or any(word in way.name for word in run.only)]
    with zygote(run.source) as made, Server(run.folder, made, source=run.source, env=env) as server:
        server.start()
        asyncio.run(_all(run, server, chosen))
        if run.size:
            _check_log(run, server.log.read_text())


def _check_log(run: Run, text: str) -> None:
    """The server counts by the processor's clock, which a busy machine does not change."""
    for pattern, most in SAID.items():
        for found in pattern.finditer(text):
            run.check(int(found[1]) <= most, f"the server says: {found[0]}")


async def _all(run: Run, server: Server, chosen: list[Way]) -> None:
    quiet = Quiet(run, server.port, await asyncio.to_thread(server.token, "quiet"))
    rows: list[dict[str, Any]] = []
    async with _hands() as hands:
        await quiet.settle_in()
        try:
            for number, way in enumerate(chosen):
                rows.append(await _one(run, server, quiet, hands, way, number))
                run.progress(f"{number + 1} of {len(chosen)} ways: {json.dumps(rows[-1])}", 0)
        finally:
            await quiet.leave()
    run.figure(ways=len(rows), noise=sum(row["bites"] for row in rows))
    if run.size:
        alone = {kind: median(row[kind]["alone"] for row in rows) for kind in KINDS}
        for row in rows:
            _compare(run, row, alone)
        run.figure(**{f"{kind}_ms_p99_alone": value for kind, value in alone.items()})
        worst = {kind: max(row[kind]["beside"] for row in rows) for kind in KINDS}
        run.figure(**{f"{kind}_ms_p99_at_the_worst": value for kind, value in worst.items()})
    run.figure(memory_mib_more_at_the_worst=max(row["mib"] for row in rows), rows=rows)


async def _one(
    run: Run, server: Server, quiet: Quiet, hands: "Hands", way: Way, number: int
) -> dict[str, Any]:
    """Times count when the machine was its own: where others had some of it, the way is taken once more."""
    rows: list[dict[str, Any]] = []
    while not rows or (run.size and rows[-1]["stolen"] > MOST_STOLEN and len(rows) < MOST_TRIES):
        rows.append(await _try(run, server, quiet, hands, way, f"noise{number}-{len(rows)}"))
    row = min(rows, key=lambda row: float(row["stolen"]))
    count = row.pop("count")
    run.check(row["bites"] >= way.bites, f"{way.name}: no noise, but {count}")
    for each in rows:  # what it takes of the memory does not depend on the host
        run.check(each["mib"] <= MOST_MIB, f"{way.name}: {each['mib']} MiB more")
    return row


async def _try(run: Run, server: Server, quiet: Quiet, hands: "Hands", way: Way, app: str) -> dict[str, Any]:
    token = await asyncio.to_thread(server.token, app)
    seed = run.seed + WAYS.index(way)
    given = {"port": server.port, "token": token, "seed": seed, "full": bool(run.size)}
    await hands.order("prepare", way=way.name, folder=str(run.folder / "workspaces"), **given)
    begun = read_machine_time()
    alone = await quiet.live(run.size * ALONE_PART) if run.size else Times()
    before = peak = server.rss()
    await hands.order("begin", way=way.name)
    beside = asyncio.create_task(quiet.live(run.size or None))
    end = asyncio.get_running_loop().time() + BITE_SECS
    count: dict[str, int] = {}
    while not beside.done() or count.get("bites", 0) < way.bites:
        await asyncio.wait([beside], timeout=0.05)
        peak = max(peak, server.rss())
        count = await hands.order("count")
        if beside.done() and asyncio.get_running_loop().time() > end:
            break
    times = await beside
    stolen = read_machine_time().stolen_since(begun)
    count = await hands.order("end")
    await asyncio.to_thread(_calm, server, app)
    row: dict[str, Any] = {
        "way": way.name,
        "story": way.story,
        "bites": count.get("bites", 0),
        "count": count,
    }
    row |= {"mib": (peak - before) // MIB, "stolen": round(stolen * 100, 1)}
    for kind in KINDS if run.size else ():
        row[kind] = {"alone": _ms(alone, kind), "beside": _ms(times, kind), "count": len(times.found[kind])}
    return row


def _calm(server: Server, app: str) -> None:
    """End what the noisy app has running, and wait until nothing is done for it: the next begins in peace."""
    status, reply = server.call("POST", "/admin/pause", {"app_name": app, "stop": True})
    assert status == 200, reply
    until(
        lambda: server.cpu_secs_in(CALM_SECS) < CALM_PART * CALM_SECS,
        "calm after the noise",
        CALM_WITHIN_SECS,
    )


def _compare(run: Run, row: dict[str, Any], alone: dict[str, float]) -> None:
    """With the median of what it took alone in this run: what is done in a few seconds has no hundredth."""
    for kind in KINDS:
        before, now = alone[kind], row[kind]["beside"]
        row[kind]["alone"] = before
        most = max(MOST_TIMES * before, FLOOR_MS)
        run.check(now <= most, f"{row['way']}: a {kind} took {now:g} ms, {before:g} alone")


def _ms(times: Times, kind: str) -> float:
    """The slowest in a hundred."""
    return round(times.percentile(kind, 0.99) * 1000, 1)


class Hands:
    """The process that makes the noise."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def order(self, do: str, **order: Any) -> Any:
        orders, answers = self._process.stdin, self._process.stdout
        assert orders is not None
        assert answers is not None
        orders.write(json.dumps({"do": do, **order}).encode() + b"\n")
        answer = json.loads(await answers.readline() or b'{"failed":"the hands are gone"}')
        if "failed" in answer:
            raise Stuck(f"{do} {order.get('way', '')}: {answer['failed']}")
        return answer["done"]


@asynccontextmanager
async def _hands() -> AsyncIterator[Hands]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "proofs.noise.hands", stdin=PIPE, stdout=PIPE, cwd=ROOT, limit=LINE_BYTES
    )
    try:
        yield Hands(process)
    finally:
        process.kill()
        await process.wait()
