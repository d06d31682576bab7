"""What one server on a Postgres does for another: events, cancels and prompts that cross, and who takes over.

    .venv/bin/python -m bench.nodes [--events 300] [--tries 30] [--takeovers 3] [--returns 5]

Two real servers share a real Postgres, which waits for the disk as in earnest; all on this machine. A session
is held at the one where it was prompted first, A; the other is B. A server that is to be gone is a third one.
Beside each figure stands what it is to be on a machine that has nothing else to do.
"""

import argparse
import asyncio
import os
import signal
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx2

from bench.kit import describe_here, new_session, server
from clawdforge.stores.postgres.link import Link
from proofs.kit.http import Cut, request, stream
from tests.postgres import Postgres, run_postgres

LEASE_SECS: Final = 3
"""The shortest that may be set. What is aimed at is told as this and a rest."""
LONGEST_SECS: Final = 30.0
PAUSE: Final = 0.02
TRIES: Final = 20
BETWEEN_MS: Final = 20
"""From one event to the next: each is written and read by itself."""
HOLDER: Final = "SELECT members.folder FROM members JOIN session_heads ON holder = node WHERE session_id = $1"
ENDED: Final = b'"turn.ended"'
STARTED: Final = b'"turn.started"'


@dataclass
class Node:
    http: httpx2.Client
    pid: int
    folder: str

    @property
    def port(self) -> int:
        return int(self.http.base_url.port or 0)

    @property
    def token(self) -> str:
        return self.http.headers["Authorization"].removeprefix("Bearer ")


@dataclass
class Seen:
    """When each event came to one reader, by the clock of this process."""

    at: dict[int, float] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    begun: list[int] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=300)
    parser.add_argument("--tries", type=int, default=30)
    parser.add_argument("--takeovers", type=int, default=3)
    parser.add_argument("--returns", type=int, default=5)
    args = parser.parse_args()
    print(describe_here())
    with (
        run_postgres(is_safe=True) as postgres,
        tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder,
    ):
        url, base = postgres.make_database(), Path(folder)
        with run_node(base / "a", url) as a, run_node(base / "b", url) as b:
            show("", [], "", "p50", "p99", "max")
            lags = asyncio.run(measure_events(hold(url, a), a, b, args.events))
            show("an event from A to a reader at B", lags, "p50 < 10 ms, p99 < 50 ms")
            for name, asked, aim in (("A", a, ""), ("B", b, "< 100 ms")):
                cancels = asyncio.run(measure_cancels(hold(url, a), a, asked, args.tries))
                show(f"a cancel at {name}, to the end of the turn at A", cancels, aim)
            here, there = measure_prompts(hold(url, a), a, b, args.tries)
            show("a prompt at A, to its answer", here)
            show("the same at B", there)
            for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
                times = [
                    measure_takeover(url, base / f"{name}{count}", b, number)
                    for count in range(args.takeovers)
                ]
                more = [one - LEASE_SECS for one in times]
                show(f"after a server was {name}: a lease and", more, "≤ 2000 ms")
            times = [one for _ in range(args.returns) for one in measure_return(postgres, (a, b))]
            show("after Postgres was killed and is back: writing", times, "≤ 2000 ms")
    print(f"load at the end {os.getloadavg()[0]:.1f}")


def show(name: str, times: Sequence[float], aim: str = "", *heads: str) -> None:
    found = sorted(time * 1e3 for time in times)
    figures = heads
    if found:
        late = found[min(len(found) - 1, int(len(found) * 0.99))]
        figures = tuple(f"{one:.1f}" for one in (statistics.median(found), late, found[-1]))
    count = f"n={len(found)}" if found else ""
    print(f"{name:48}" + "".join(f"{one:>9}" for one in figures) + f"  {count:6} {aim}", flush=True)


@contextmanager
def run_node(data: Path, url: str) -> Iterator[Node]:
    env = {"CLAWDFORGE_DATABASE_URL": url, "CLAWDFORGE_LEASE_SECS": str(LEASE_SECS)}
    with server(data, CLAWDFORGE_LOG_LEVEL="error", **env) as (http, pid):
        yield Node(http, pid, (data / "folder.id").read_text().strip())


def hold(url: str, node: Node) -> str:
    """A session that this node runs."""
    with closing(Link(url)) as link:
        for _ in range(TRIES):
            session = new_session(node.http)
            take_turn(node, session)
            if link.fetch(HOLDER, (session,)) == [(node.folder,)]:
                return session
    raise AssertionError("other servers run whatever this one is asked for")


def take_turn(node: Node, session: str) -> float:
    began = time.perf_counter()
    reply = node.http.post(f"/sessions/{session}/turn", json={"prompt": "echo hello"})
    assert reply.status_code == 200, reply.text
    return time.perf_counter() - began


@asynccontextmanager
async def following(node: Node, session: str) -> AsyncIterator[Seen]:
    """From the next event on."""
    seen = Seen()
    after = node.http.get(f"/sessions/{session}").json()["head"]

    async def read() -> None:
        async for frame in stream(node.port, f"/sessions/{session}/events", node.token, after):
            if frame is not None and frame.seq > 0:
                seen.at[frame.seq] = time.perf_counter()
                if STARTED in frame.data:
                    seen.begun.append(frame.seq)
                if ENDED in frame.data:
                    seen.ended[frame.seq] = seen.at[frame.seq]

    task = asyncio.create_task(read())
    try:
        yield seen
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Cut):
            await task


async def wait_until(happens: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LONGEST_SECS
    while not happens():
        assert time.monotonic() < end, f"it did not happen that {what}"
        await asyncio.sleep(PAUSE)


async def post(node: Node, path: str, body: dict[str, object]) -> None:
    reply = await request(node.port, "POST", path, node.token, body=body)
    assert reply.ok, reply


async def measure_events(session: str, a: Node, b: Node, count: int) -> list[float]:
    """How much later a reader at B has what one at A has. Both are in this process, with one clock."""
    async with following(a, session) as here, following(b, session) as there:
        await asyncio.sleep(0.5)  # until both wait for what is new
        await post(a, f"/sessions/{session}/turns", {"prompt": f"chunks {count} 20 {BETWEEN_MS}"})
        await wait_until(lambda: bool(here.ended and there.ended), "both saw the end")
        return [there.at[seq] - at for seq, at in here.at.items()]


async def measure_cancels(session: str, a: Node, asked: Node, count: int) -> list[float]:
    """From the request to the end of the turn on the log, as a reader at A sees it."""
    times = []
    async with following(a, session) as seen:
        for number in range(count):
            await post(a, f"/sessions/{session}/turns", {"prompt": "sleep 30"})
            await wait_until(lambda want=number: len(seen.begun) > want, "it runs")  # type: ignore[misc]
            await asyncio.sleep(PAUSE)
            began = time.perf_counter()
            await post(asked, f"/sessions/{session}/cancel", {})
            await wait_until(lambda want=number: len(seen.ended) > want, "it is cancelled")  # type: ignore[misc]
            times.append(max(seen.ended.values()) - began)
    return times


def measure_prompts(session: str, a: Node, b: Node, count: int) -> tuple[list[float], list[float]]:
    """In turn: the session stays where its agent lives."""
    here: list[float] = []
    there: list[float] = []
    for _ in range(count):
        for node, times in ((a, here), (b, there)):
            time.sleep(PAUSE)
            times.append(take_turn(node, session))
    return here, there


def measure_takeover(url: str, data: Path, other: Node, how: signal.Signals) -> float:
    with run_node(data, url) as gone:
        try:
            return asyncio.run(lose(gone, hold(url, gone), other, how))
        finally:
            with suppress(ProcessLookupError):
                os.kill(gone.pid, signal.SIGCONT)


async def lose(gone: Node, session: str, other: Node, how: signal.Signals) -> float:
    """From the moment when a server is gone until what it ran is ended, as a reader elsewhere sees it."""
    async with following(other, session) as seen:
        await post(gone, f"/sessions/{session}/turns", {"prompt": "sleep 60"})
        await wait_until(lambda: bool(seen.begun), "it runs")
        began = time.perf_counter()
        os.kill(gone.pid, how)
        await wait_until(lambda: bool(seen.ended), "another server ended the turn")
        return max(seen.ended.values()) - began


def measure_return(postgres: Postgres, nodes: Sequence[Node]) -> list[float]:
    """From the moment when Postgres answers until each server has written."""
    postgres.kill()
    time.sleep(1.0)
    postgres.start()
    began, left, times = time.perf_counter(), list(nodes), []
    while left:
        for node in list(left):
            if node.http.post("/sessions", json={"agent": "scripted"}).status_code == 200:
                left.remove(node)
                times.append(time.perf_counter() - began)
        assert time.perf_counter() < began + LONGEST_SECS, "no server writes again"
        time.sleep(PAUSE)
    return times


if __name__ == "__main__":
    main()
