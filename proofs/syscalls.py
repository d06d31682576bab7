"""Kill -9 exactly at the N-th write, sync, rename of a turn and of a start, for N = 1, 2, 3 … to the end."""

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw

from proofs.kit.client import Client
from proofs.kit.history import check, fetch, heard
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, until, zygote

SHORT, FULL = 4, 2000
CALLS = (
    *("pwrite64", "fdatasync", "fsync", "write", "renameat", "ftruncate", "unlinkat", "mkdirat"),
    *("openat", "copy_file_range", "sendfile", "syncfs", "fchmod", "clone3", "clone"),
)
STRIDE_SHORT = 9
SETTLE = 20.0


def inject(call: str, number: int) -> list[str]:
    what = f"inject={call}:signal=SIGKILL:when={number}"
    return ["-o", "/dev/null", "-e", f"trace={call}", "-e", what]


class Sweep:
    """One kind of call: kill at its N-th, until a life passes without a kill."""

    def __init__(self, run: Run, server: Server, client: Client, call: str) -> None:
        self.points = 0
        self.recovering = 0
        self._most = 1 if run.short else 1000
        self._run = run
        self._server = server
        self._client = client
        self._call = call

    async def turns(self, left: Callable[[], bool], stride: int) -> None:
        """Points inside a scripted turn: the tracer joins a server that is up."""
        number = self._run.random.randint(1, stride)
        while left() and self.points < self._most:
            session = await self._client.session(retention="keep")
            await asyncio.to_thread(self._server.trace, inject(self._call, number))
            died = await self._turn(session)
            if not died:
                self._server.untrace()
                return
            self.points += 1
            await self._recover(session)
            number += stride

    async def starts(self, left: Callable[[], bool], stride: int) -> None:
        """Points inside a start with a turn to settle and one to run: the crash in the recovery."""
        number = self._run.random.randint(1, stride)
        while left() and self.recovering < self._most:
            session = await self._client.session(retention="keep")
            await self._client.submit(session, f"hang\necho {session}", "cut-off")
            await self._client.submit(session, f"echo queued {session}", "queued")
            self._server.kill()
            self._server.start(trace=inject(self._call, number), ready=False)
            died = await asyncio.to_thread(self._died_or_ready)
            if not died:
                self._server.untrace()
            await self._recover(session)
            if not died:
                return
            self.points += 1
            self.recovering += 1
            number += stride

    def _died_or_ready(self) -> bool:
        with contextlib.suppress(Stuck):
            until(self._server.ready, "a start", SETTLE)
        return not self._server.alive

    async def _turn(self, session: str) -> bool:
        """Whether the server died of it."""
        client = Client(self._server.port, self._client.token, self._client.acks)
        work = asyncio.create_task(client.submit(session, f"chunks 3 50\necho {session}", "k", wait=True))
        done = asyncio.create_task(self._after(work, session))
        while self._server.alive and not done.done():
            await asyncio.sleep(0.01)
        work.cancel()
        done.cancel()
        await asyncio.gather(work, done, return_exceptions=True)
        return not self._server.alive

    async def _after(self, work: "asyncio.Task[int]", session: str) -> None:
        await work
        await self._client.settled(session)
        await asyncio.sleep(0.15)  # the copy of the agent's home comes after the answer

    async def _recover(self, session: str) -> None:
        server, client, run = self._server, self._client, self._run
        if not server.alive:
            server.gone()
            run.check(sound(server.data_dir), f"{self._call}: the store is not sound after the kill")
            await asyncio.to_thread(server.start)
        if not any(ack.session == session and ack.key == "queued" for ack in client.acks):
            await client.submit(session, f"chunks 3 50\necho {session}", "k")
            await client.submit(session, f"echo next {session}", "next")
        history = await fetch(client, session)
        history.heard = heard(server.witness)
        for fault in check(history):
            run.violate(f"{self._call}: {fault}")
        last = history.turns[-1]
        run.check(last["outcome"] == "completed", f"{self._call}: {session[:8]} is not usable: {last}")


def sound(data_dir: Path) -> bool:
    path = data_dir / "forge.db"
    if not path.exists() or not path.stat().st_size:
        return True
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def prove(run: Run) -> None:
    with zygote(run.source) as made:
        fresh = _first_starts(run, lambda: Server(run.folder / "fresh", made, source=run.source))
        with Server(run.folder, made, source=run.source) as server:
            server.start()
            asyncio.run(_sweeps(run, server, fresh))


def _first_starts(run: Run, make: Callable[[], Server]) -> int:
    """The very first start, which makes the store: killed at its N-th call, the next one must succeed."""
    points = 0
    for call in ("pwrite64", "fdatasync", "openat", "mkdirat"):
        number, limit = 1, 2 if run.short else 200
        stride = 31 if run.short else max(1, 400 // run.size)
        while limit:
            limit -= 1
            server = make()
            shutil.rmtree(server.data_dir, ignore_errors=True)
            server.start(trace=inject(call, number), ready=False)
            with contextlib.suppress(Stuck):
                until(server.ready, "a start", SETTLE)
            died = not server.alive
            server.kill()
            if not died:
                break
            points += 1
            run.progress(f"{points} points in a first start")
            server.start()
            run.check(bool(server.token()), f"{call} {number}: no token after a killed first start")
            server.kill()
            number += stride
            if points * 10 > run.size:
                return points
    return points


async def _sweeps(run: Run, server: Server, fresh: int) -> None:
    client = Client(server.port, server.token())
    done: list[Sweep] = []

    def left() -> bool:
        count = fresh + sum(sweep.points for sweep in done)
        run.progress(f"{count} of {run.size} points")
        return count < run.size

    stride = STRIDE_SHORT if run.short else 1
    while left():
        before = sum(sweep.points for sweep in done)
        for call in run.random.sample(CALLS, len(CALLS)) if run.short else CALLS:
            sweep = Sweep(run, server, client, call)
            done.append(sweep)
            await sweep.turns(left, stride)
            await sweep.starts(left, stride)
        if sum(sweep.points for sweep in done) == before:
            break
    by_call: dict[str, int] = {}
    for sweep in done:
        by_call[sweep._call] = by_call.get(sweep._call, 0) + sweep.points  # noqa: SLF001 - our own class
    run.figure(
        points=fresh + sum(by_call.values()),
        points_in_a_first_start=fresh,
        points_in_recovery=sum(sweep.recovering for sweep in done),
        points_by_call=", ".join(f"{call} {count}" for call, count in by_call.items() if count),
        acknowledged_prompts=len({(ack.session, ack.key) for ack in client.acks}),
    )
