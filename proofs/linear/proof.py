"""Linearizability: concurrent clients, through kills, are told what one after the other would have been."""

import asyncio
import random
from collections import Counter

from proofs.kit.client import Client
from proofs.kit.history import heard
from proofs.kit.report import Run
from proofs.kit.server import Server, until, zygote
from proofs.linear.checker import Checker, Undecided
from proofs.linear.clients import Talk
from proofs.linear.explain import describe, find_fault
from proofs.linear.model import Session
from proofs.linear.recorder import Recorder, World

SHORT, FULL = 240, 12_000
SESSIONS = 6
REQUESTS = 40  # of one session
BETWEEN_KILLS = (30, 200)  # answers


def prove(run: Run) -> None:
    env = {"CLAWDFORGE_SANDBOX": "off"}  # how agents are contained changes no order, and takes time
    with zygote(run.source) as made, Server(run.folder, made, source=run.source, env=env) as server:
        server.start()
        asyncio.run(Trial(run, server).run_all())


class Trial:
    """Waves of sessions, each lived under kills and then checked."""

    def __init__(self, run: Run, server: Server) -> None:
        self._run = run
        self._server = server
        self._client = Client(server.port, server.token())
        self._world = World(server.port, self._client.token, asyncio.Event())
        self._counts = Counter[str]()
        self._sessions = 0
        self._hardest = 0

    async def run_all(self) -> None:
        run, world = self._run, self._world
        left = run.size
        while left > 0 and not run.violations:
            shares = [min(REQUESTS, left - at) for at in range(0, min(left, SESSIONS * REQUESTS), REQUESTS)]
            left -= sum(shares)
            await self._live_wave(shares)
            run.progress(f"{run.size - left} of {run.size} requests, {len(world.deaths)} kills")
        run.figure(
            sessions=self._sessions,
            operations=sum(self._counts.values()),
            kills=len(world.deaths),
            hardest_session_configurations=self._hardest,
            operations_by_kind=", ".join(f"{kind} {n}" for kind, n in sorted(self._counts.items())),
        )

    async def _live_wave(self, shares: list[int]) -> None:
        world = self._world
        world.up.set()
        talks = [await self._open(share) for share in shares]
        living = asyncio.gather(*(talk.live() for talk in talks))
        while not living.done():
            some = min(self._run.random.randint(*BETWEEN_KILLS), self._run.size // 2)
            answers = world.answers + some
            while not living.done() and world.answers < answers:
                await asyncio.wait({living}, timeout=self._run.random.uniform(0.0, 0.1))
            if not living.done():
                await self._kill()
        await living
        await asyncio.gather(*(talk.end() for talk in talks))
        count = heard(self._server.witness)
        for talk in talks:
            talk.note_heard(count)
        for fault in world.unanswered:
            self._run.violate(fault)
        for talk in talks:
            self._check(talk.recorder)

    async def _open(self, requests: int) -> Talk:
        session = await self._client.session(permission_mode="ask", retention="keep")
        self._sessions += 1
        chance = random.Random(f"{self._run.seed} {self._sessions}")
        return Talk(Recorder(self._world, session), chance, requests)

    async def _kill(self) -> None:
        server, world, chance = self._server, self._world, self._run.random
        world.up.clear()
        await asyncio.to_thread(server.kill)
        world.record_death()
        await asyncio.to_thread(until, lambda: not server.agents(), "the end of all agents", 5)
        if chance.random() < 0.25:  # and once more while it recovers
            await asyncio.to_thread(server.start, ready=False)
            await asyncio.sleep(chance.uniform(0.0, 0.4))
            await asyncio.to_thread(server.kill)
            world.record_death()
            world.record_recovery(whole=False)
        await asyncio.to_thread(server.start)
        world.record_recovery(whole=True)
        world.up.set()

    def _check(self, recorder: Recorder) -> None:
        self._counts += recorder.counts
        ops = recorder.history()
        checker = Checker(Session(), ops)
        try:
            holds = checker.holds()
        except Undecided as undecided:
            self._run.violate(f"session {recorder.session} could not be decided: {undecided}")
            return
        self._hardest = max(self._hardest, checker.seen)
        fault = None if holds else find_fault(ops)
        if fault is not None:
            self._run.violate(describe(recorder.session, fault))
