"""Kill -9 exactly at the N-th write, sync, rename of a turn and of a start, for N = 1, 2, 3 … to the end."""

import asyncio
import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import apsw

from proofs.deeds import DEEDS, Deed, Scene
from proofs.kit.client import Client
from proofs.kit.history import check, fetch, heard
from proofs.kit.http import Cut
from proofs.kit.report import Run
from proofs.kit.server import Server, Zygote, until, zygote
from proofs.kit.tracer import every_spelling

SHORT, FULL = 4, 2000
CALLS = (
    *("pwrite64", "fdatasync", "fsync", "write", "rename", "ftruncate", "unlink", "mkdir"),
    *("openat", "copy_file_range", "sendfile", "syncfs", "fchmod", "clone3", "clone"),
)
FIRST_CALLS = ("pwrite64", "fdatasync", "openat", "mkdir")
WORKERS = 3
STRIDE_SHORT = 9
DEEDS_STRIDE = 2  # a round of all deeds is long; the next one begins elsewhere by chance
SETTLE = 20.0


def inject(call: str, number: int) -> list[str]:
    calls = every_spelling(call)
    what = f"inject={calls}:signal=SIGKILL:when={number}"
    return ["-o", "/dev/null", "-e", f"trace={calls}", "-e", what]


class Sweep:
    """One kind of call: kill at its N-th, until a life passes without a kill."""

    def __init__(self, run: Run, server: Server, client: Client, call: str) -> None:
        self.call = call
        self.points = 0
        self.recovering = 0
        self.done = 0
        self._most = 1 if run.short else 1000
        self._run = run
        self._server = server
        self._client = client

    async def turns(self, left: Callable[[], bool], stride: int) -> None:
        """Points inside a scripted turn: the tracer joins a server that is up."""
        number = self._run.random.randint(1, stride)
        while left() and self.points < self._most:
            session = await self._client.session(retention="keep")
            await asyncio.to_thread(self._server.trace, inject(self.call, number))
            died = await self._turn(session)
            if not died:
                whole = self._server.is_traced
                await asyncio.to_thread(self._server.untrace)
                if self._server.alive:  # else the kill came while the tracer left
                    if whole:
                        return
                    continue  # the tracer was lost: the same once more
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
            await asyncio.to_thread(self._server.kill)
            died = await asyncio.to_thread(died_in_start, self._server, inject(self.call, number))
            whole = died or self._server.is_traced
            await asyncio.to_thread(self._server.untrace)
            await self._recover(session)
            if not died:
                if whole:
                    return
                continue
            self.points += 1
            self.recovering += 1
            number += stride

    async def deeds(self, left: Callable[[], bool], stride: int, deed: Deed) -> None:
        """Points inside an undo, a fork, an upload … and the turn after it."""
        number = self._run.random.randint(1, stride)
        while left() and self.points < self._most:
            scene = Scene(deed, self._client, self._server)
            await scene.prepare()
            await asyncio.to_thread(self._server.trace, inject(self.call, number))
            died = await self._died_of(scene.act())
            whole = died or self._server.is_traced
            if not died:
                await asyncio.to_thread(self._server.untrace)
                died = not self._server.alive  # the kill may come while the tracer leaves
            if died:
                await self._restart()
            for fault in await scene.faults():
                self._run.violate(f"{self.call} {number}: {fault}")
            if not died and whole:
                return
            if died:
                self.points += 1
                self.done += 1
                number += stride

    async def _turn(self, session: str) -> bool:
        client = Client(self._server.port, self._client.token, self._client.acks)

        async def work() -> None:
            await client.submit(session, f"chunks 3 50\necho {session}", "k", wait=True)
            await self._client.wait_ended(session)

        return await self._died_of(work())

    async def _died_of(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether the server died before this was done, or of what it does after an answer."""
        task = asyncio.create_task(work)
        while self._server.alive and not task.done():
            await asyncio.sleep(0.01)
        if self._server.alive:
            await task
            await asyncio.sleep(0.15)  # the copy of the agent's home comes after the answer
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return not self._server.alive

    async def _answers(self) -> bool:
        """Whether it lives: one that is about to die of its last injected kill still seems to."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE):
                while self._server.alive:
                    with contextlib.suppress(Cut):
                        await self._client.call("GET", "/healthz")
                        return True
                    await asyncio.sleep(0.01)
        return self._server.alive

    async def _restart(self) -> None:
        await asyncio.to_thread(self._server.wait_gone)
        good = await asyncio.to_thread(is_sound, self._server.data_dir)
        self._run.check(good, f"{self.call}: the store is not sound after the kill")
        await asyncio.to_thread(self._server.start)

    async def _recover(self, session: str) -> None:
        server, client, run = self._server, self._client, self._run
        killed = not await self._answers()
        if killed:
            await self._restart()
        queued = any(ack.session == session and ack.key == "queued" for ack in client.acks)
        if not queued:
            await client.submit(session, f"chunks 3 50\necho {session}", "k")
        last = (await client.wait_ended(session))[-1]
        cut_off = killed and last["outcome"] == "interrupted"  # it ran by itself when the kill came
        if cut_off or not queued:
            await client.submit(session, f"echo next {session}", "next")
        history = await fetch(client, session)
        history.heard = heard(server.witness)
        for fault in check(history):
            run.violate(f"{self.call}: {fault}")
        last = history.turns[-1]
        run.check(last["outcome"] == "completed", f"{self.call}: {session[:8]} is not usable: {last}")


def is_sound(data_dir: Path) -> bool:
    path = data_dir / "forge.db"
    if not path.exists() or not path.stat().st_size:
        return True
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def died_in_start(server: Server, trace: list[str]) -> bool:
    """Whether a traced start ended in a kill; if not, the server is up."""
    server.start(trace=trace, ready=False)
    until(lambda: not server.alive or server.get("/readyz")[0] == 200, "a start or its end", SETTLE)
    return not server.alive


class Worker:
    """One server and what it is swept with; several of them stand side by side, since one often waits."""

    def __init__(self, run: Run, made: Zygote, number: int) -> None:
        self.client = Client(0, "")
        self._run = run
        self._made = made
        self._folder = run.folder / f"worker-{number}"

    async def work(self, plan: "Plan") -> None:
        for call in plan.first_calls:
            if plan.fresh_left:
                await asyncio.to_thread(self._first_starts, plan, call)
        with Server(self._folder, self._made, source=self._run.source) as server:
            await asyncio.to_thread(server.start)
            self.client.port, self.client.token = server.port, await asyncio.to_thread(server.token)
            for call, kind in plan.jobs:
                sweep = Sweep(self._run, server, self.client, call)
                plan.sweeps.append(sweep)
                if isinstance(kind, Deed):
                    await sweep.deeds(plan.has_points_left, max(plan.stride, DEEDS_STRIDE), kind)
                else:
                    await (sweep.turns if kind == "turns" else sweep.starts)(
                        plan.has_points_left, plan.stride
                    )

    def _first_starts(self, plan: "Plan", call: str) -> None:
        """The very first start, which makes the store: killed at its N-th call, the next one must succeed."""
        run, number = self._run, 1
        stride = 31 if run.short else max(1, 400 // run.size)
        for _ in range(2 if run.short else 200):
            with Server(self._folder / "fresh", self._made, source=run.source) as server:
                shutil.rmtree(server.data_dir, ignore_errors=True)
                if not died_in_start(server, inject(call, number)):
                    return
                server.wait_gone()
                server.start()
                run.check(bool(server.token()), f"{call} {number}: no token after a killed first start")
            plan.fresh += 1
            number += stride
            if not plan.has_points_left() or not plan.fresh_left:
                return


def name_of(kind: str | Deed) -> str:
    return kind.name if isinstance(kind, Deed) else kind


class Plan:
    """The work that is left for all workers together."""

    def __init__(self, run: Run) -> None:
        self.fresh = 0
        self.sweeps: list[Sweep] = []
        self.stride = STRIDE_SHORT if run.short else 1
        self._run = run
        self.first_calls = iter(FIRST_CALLS)
        self.jobs = self._jobs()  # one iterator for all: each job is done once a round

    @property
    def points(self) -> int:
        return self.fresh + sum(sweep.points for sweep in self.sweeps)

    @property
    def fresh_left(self) -> bool:
        return self.fresh * 10 < self._run.size and not self._run.only

    def has_points_left(self) -> bool:
        self._run.progress(f"{self.points} of {self._run.size} points")
        return self.points < self._run.size

    def _jobs(self) -> Iterator[tuple[str, str | Deed]]:
        """Round after round, as long as there is one more point in any of them."""
        kinds: list[str | Deed] = ["turns", "starts", *DEEDS]
        if self._run.only:
            kinds = [kind for kind in kinds if any(word in name_of(kind) for word in self._run.only)]
        while self.has_points_left():
            before = self.points
            jobs = [(call, kind) for kind in kinds for call in CALLS]
            for job in self._run.random.sample(jobs, len(jobs)) if self._run.short else jobs:
                if self.has_points_left():
                    yield job
            if self.points == before:
                return


def prove(run: Run) -> None:
    with zygote(run.source) as made:
        asyncio.run(_sweep(run, made))


async def _sweep(run: Run, made: Zygote) -> None:
    plan = Plan(run)
    workers = [Worker(run, made, number) for number in range(1 if run.short else WORKERS)]
    await asyncio.gather(*(worker.work(plan) for worker in workers))
    by_call = Counter[str]()
    for sweep in plan.sweeps:
        by_call[sweep.call] += sweep.points
    run.figure(
        points=plan.points,
        points_in_a_first_start=plan.fresh,
        points_in_recovery=sum(sweep.recovering for sweep in plan.sweeps),
        points_in_undo_fork_upload_and_such=sum(sweep.done for sweep in plan.sweeps),
        points_by_call=", ".join(f"{call} {count}" for call, count in by_call.items() if count),
        acknowledged_prompts=sum(
            len({(ack.session, ack.key) for ack in worker.client.acks}) for worker in workers
        ),
    )
