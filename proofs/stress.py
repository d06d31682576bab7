"""Stress: ordinary and hard use of one server with too few places; then all comes back to level."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from proofs.kit.client import Client, Reader
from proofs.kit.history import check, fetch, heard
from proofs.kit.http import Cut, Reply, request
from proofs.kit.report import Run
from proofs.kit.server import Server, zygote
from proofs.kit.talk import Talk

SHORT, FULL = 4, 600
APPS, SESSIONS, PLACES = 4, 20, 6
SESSIONS_SHORT, PLACES_SHORT = 6, 3
ROUNDS, FAULTY_ROUNDS = 7, 3
"""The last rounds have no kill of the server, and are compared with each other: a young server holds less
than one that has served everything once, and what four rounds in one life leak stays to be seen."""

LEVEL_SECS = 30.0
ANSWER_SECS = 120.0
"""Nothing here takes as long on the busiest machine: a turn ends after 4 s, and few are before it."""

MIB = 1 << 20
SPARE_FDS, SPARE_MIB = 6, 48
REFUSED = 500
ENV = {
    "CLAWDFORGE_MAX_LIVE_AGENTS": str(PLACES),
    "CLAWDFORGE_TURN_TIMEOUT_SECS": "4",
    "CLAWDFORGE_CANCEL_GRACE_SECS": "1",
    "CLAWDFORGE_STOP_GRACE_SECS": "1",
    "CLAWDFORGE_PERMISSION_TIMEOUT_SECS": "2",
    "CLAWDFORGE_HEARTBEAT_SECS": "0.5",
    "CLAWDFORGE_HOME_COPIES": "3",
    "CLAWDFORGE_AGENT_IDLE_SECS": "2",
    "CLAWDFORGE_SPARE_AGENTS": "2",
}
ENV_SHORT = {
    **ENV,
    "CLAWDFORGE_MAX_LIVE_AGENTS": str(PLACES_SHORT),
    "CLAWDFORGE_TURN_TIMEOUT_SECS": "1.5",
    "CLAWDFORGE_CANCEL_GRACE_SECS": "0.2",
    "CLAWDFORGE_PERMISSION_TIMEOUT_SECS": "0.5",
}


@dataclass(frozen=True, slots=True)
class Level:
    """What a server holds."""

    tasks: int
    places: int
    agents: int
    workers: int
    readers: int
    fds: int
    mib: int

    def is_quiet(self) -> bool:
        return not (self.places or self.agents or self.workers or self.readers)


class Watched(Client):
    """A client that must be answered, unless its server died meanwhile."""

    def __init__(self, stress: "Stress", token: str) -> None:
        super().__init__(stress.server.port, token)
        self._stress = stress

    async def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Reply:
        stress, loop = self._stress, asyncio.get_running_loop()
        life, began = stress.life, loop.time()
        what = f"{method} {path}"
        try:
            headers = {"Idempotency-Key": key} if key else {}
            reply = await request(
                self.port, method, path, self.token, body=body, headers=headers, seconds=ANSWER_SECS
            )
        except Cut as cut:
            stress.run.check(life != stress.life or life % 2 == 1, f"{what} got no answer: {cut}")
            raise
        stress.count["requests"] += 1
        stress.slowest = max(stress.slowest, loop.time() - began)
        stress.run.check(reply.status != REFUSED, f"{what}: {reply.body[:300]!r}")
        return reply


class Stress:
    """The server, its clients, and whoever breaks things."""

    def __init__(self, run: Run, server: Server) -> None:
        self.run = run
        self.server = server
        self.life = 0  # odd while the server is down
        self.working = False
        self.count = Counter[str]()
        self.slowest = 0.0
        self.talks: list[Talk] = []
        self.levels: list[Level] = []

    async def live(self) -> None:
        await asyncio.to_thread(self.server.start)
        tokens = [await asyncio.to_thread(self.server.token, f"app{number}") for number in range(APPS)]
        clients = [Watched(self, token) for token in tokens]
        for number in range(SESSIONS_SHORT if self.run.short else SESSIONS):
            client = clients[number % APPS]
            mode = "ask" if number % 2 else "approve_all"
            session = await client.session(retention="keep", permission_mode=mode)
            self.talks.append(Talk(client, session, f"{self.run.seed} {number}", self.count))
        rounds = 1 if self.run.short else ROUNDS
        for number in range(rounds):
            await self._work(self.run.size / rounds, faulty=self.run.short or number < FAULTY_ROUNDS)
            await self._come_to_rest()
        for talk in self.talks:
            await self._check(talk)

    async def _work(self, seconds: float, *, faulty: bool) -> None:
        """Everybody at once for a while, each until what was begun is done."""
        self.working = True
        readers = [Reader(talk.client, talk.session, keep=False) for talk in self.talks]
        reading = [asyncio.create_task(reader.follow(self._leaves)) for reader in readers]
        work = [asyncio.create_task(talk.work()) for talk in self.talks]
        work.append(asyncio.create_task(self._kill_agents()))
        for part in (0.5, 0.8) if faulty and not self.run.short else (0.5,):
            await self._watch(seconds * part, work)
            if faulty:
                await self._restart(gracefully=part > 0.5)
            seconds -= seconds * part
        await self._watch(seconds, work)
        self.working = False
        for talk in self.talks:
            talk.working = False
        await asyncio.gather(*work)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        for reader in readers:
            self.count["events_read"] += reader.last
            for fault in reader.faults:
                self.run.violate(fault)

    async def _watch(self, seconds: float, work: list[asyncio.Task[None]]) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while (left := end - asyncio.get_running_loop().time()) > 0:
            done, _ = await asyncio.wait(work, timeout=min(left, 5), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            found = self.count
            self.run.progress(f"{found['requests']} answers, {found['agents_killed']} agents killed")

    def _leaves(self, seen: int) -> bool:
        return self.working and seen > 0 and self.run.random.random() < 0.05

    async def _kill_agents(self) -> None:
        while self.working:
            await asyncio.sleep(self.run.random.uniform(0.2, 1.2))
            pids = await asyncio.to_thread(self.server.agents)
            if pids:
                with suppress(ProcessLookupError):
                    os.kill(self.run.random.choice(pids), signal.SIGKILL)
                    self.count["agents_killed"] += 1

    async def _restart(self, *, gracefully: bool) -> None:
        self.life += 1
        await asyncio.to_thread(self.server.stop if gracefully else self.server.kill)
        await asyncio.to_thread(self.server.start)
        self.life += 1
        self.count["servers_stopped" if gracefully else "servers_killed"] += 1

    async def _come_to_rest(self) -> None:
        """Close all sessions: the server must hold nothing then. Then open them again."""
        for talk in self.talks:
            await talk.client.wait_ended(talk.session)
        for talk in self.talks:
            await talk.client.repeat("DELETE", f"/sessions/{talk.session}")
        loop = asyncio.get_running_loop()
        end = loop.time() + LEVEL_SECS
        while not (level := await asyncio.to_thread(self._measure)).is_quiet() and loop.time() < end:
            await asyncio.sleep(0.2)
        # The connection of the last look may still be on its way out; what leaks does not go.
        while self.levels and level.tasks > self.levels[-1].tasks and loop.time() < end:
            await asyncio.sleep(0.2)
            level = await asyncio.to_thread(self._measure)
        self.run.check(level.is_quiet(), f"{LEVEL_SECS:g} s after the last request it holds {level}")
        self.levels.append(level)
        for talk in self.talks:
            await talk.client.repeat("POST", f"/sessions/{talk.session}/reopen")

    def _measure(self) -> Level:
        _, text = self.server.get("/metrics")
        values = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
        _, stuck = self.server.get("/admin/stuck?secs=0")
        self.run.check(not stuck["tasks"], f"background tasks are down: {stuck['tasks']}")
        return Level(
            tasks=int(values["clawdforge_tasks"]),
            places=int(values["clawdforge_places_taken"]),
            readers=int(values["clawdforge_readers"]),
            workers=stuck["count"],
            agents=len(self.server.agents()),
            fds=self.server.fds(),
            mib=self.server.rss() // MIB,
        )

    async def _check(self, talk: Talk) -> None:
        history = await fetch(talk.client, talk.session)
        history.heard, history.whole = heard(self.server.witness), talk.whole
        for fault in check(history):
            self.run.violate(fault)
        used = await talk.client.repeat("GET", f"/sessions/{talk.session}/usage")
        usages = [turn["usage"] for turn in history.turns if turn["usage"]]
        told = sum(usage["total_tokens"] for usage in usages if not usage["estimated"])
        most = sum(usage["total_tokens"] for usage in usages)  # some of what agents report is marked as well
        fits = told <= used["total_tokens"] <= most
        self.run.check(fits, f"{talk.session[:8]} used {used['total_tokens']}, its turns {told} to {most}")
        self.count["turns"] += len(history.turns)
        self.count["events"] += len(history.events)
        for turn in history.turns:
            self.count[f"turns_{turn['outcome']}"] += 1


def prove(run: Run) -> None:
    """`size` is for how many seconds."""
    env = ENV_SHORT if run.short else ENV
    with zygote(run.source) as made, Server(run.folder, made, source=run.source, env=env) as server:
        stress = Stress(run, server)
        asyncio.run(stress.live())
    first, last = stress.levels[min(FAULTY_ROUNDS, len(stress.levels) - 1)], stress.levels[-1]
    run.check(last.tasks <= first.tasks, f"{first.tasks} tasks at a rest, {last.tasks} at the last")
    run.check(last.fds <= first.fds + SPARE_FDS, f"{first.fds} descriptors, then {last.fds}")
    run.check(last.mib <= first.mib + SPARE_MIB, f"{first.mib} MiB, then {last.mib}")
    run.figure(
        **dict(sorted(stress.count.items())),
        slowest_answer_secs=round(stress.slowest, 1),
        tasks_at_rest=", ".join(str(level.tasks) for level in stress.levels),
        descriptors_at_rest=", ".join(str(level.fds) for level in stress.levels),
        memory_mib_at_rest=", ".join(str(level.mib) for level in stress.levels),
    )
