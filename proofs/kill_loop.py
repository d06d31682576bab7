"""Kill -9 at random moments, also in the middle of recovery, while eight sessions work and are read."""

import asyncio
import random
import statistics
from collections import Counter
from collections.abc import Callable

from proofs.kit.client import Client, Reader
from proofs.kit.history import check, fetch, heard
from proofs.kit.report import Run
from proofs.kit.server import Server, Zygote, until, zygote

SHORT, FULL = 5, 1000
SESSIONS = 8
POLICIES = ("hold", "hold", "continue", "retry")
COLD_EVERY = 25
VICTIMS = 2


def prompt_of(key: str, chunks: int) -> tuple[str, str]:
    """A unique script, and its answer if it is not cut off."""
    whole = "".join(f"{str(number).ljust(11, '.')} " for number in range(1, chunks + 1))
    return f"chunks {chunks} 12 8\necho {key}", whole + key


class Load:
    """What clients do to one session until they are told to stop."""

    def __init__(self, chance: random.Random, client: Client, session: str, number: int, policy: str) -> None:
        self.session = session
        self.policy = policy
        self.reader = Reader(client, session)
        self.whole: dict[str, str] = {}
        self.working = True
        self._client = client
        self._chance = chance
        self._number = number

    async def work(self) -> None:
        count = 0
        while self.working:
            count += 1
            key = f"k{self._number}-{count}"
            prompt, whole = prompt_of(key, self._chance.randint(1, 25))
            self.whole[prompt] = whole
            how = self._chance.random()
            await self._client.submit(self.session, prompt, key, wait=how < 0.5)
            if how > 0.9:  # the same once more: a client that did not believe the answer
                await self._client.submit(self.session, prompt, key)
            if count % 3 == 0:
                await self._client.wait_ended(self.session)


class Victim:
    """One server that is killed again and again. Several run side by side, since a kill is mostly waiting."""

    def __init__(self, run: Run, made: Zygote, number: int, kills: int) -> None:
        self.server = Server(run.folder / f"victim-{number}", made, source=run.source)
        self.client = Client(self.server.port, "")
        self.kills = 0
        self.early = 0
        self.orphans = 0.0
        self.found = Counter[str]()
        self._run = run
        self._left = kills
        self._chance = random.Random(f"{run.seed} {number}")

    async def live(self, report: Callable[[], None]) -> None:
        with self.server as server:
            await asyncio.to_thread(server.start)
            self.client.token = await asyncio.to_thread(server.token)
            loads = [await self._load(number) for number in range(SESSIONS)]
            work = [asyncio.create_task(load.work()) for load in loads]
            readers = [asyncio.create_task(load.reader.follow()) for load in loads]
            for count in range(self._left):
                await self._kill(cold=count % COLD_EVERY == COLD_EVERY - 1)
                report()
                for task in (task for task in (*work, *readers) if task.done()):
                    await task
            for load in loads:
                load.working = False
            await asyncio.gather(*work)
            for load in loads:
                await self._check(load)
            for task in readers:
                task.cancel()

    async def _load(self, number: int) -> Load:
        policy = POLICIES[number % 4]
        session = await self.client.session(on_interrupt=policy, retention="keep")
        return Load(self._chance, self.client, session, number, policy)

    async def _kill(self, *, cold: bool) -> None:
        server, chance, loop = self.server, self._chance, asyncio.get_running_loop()
        await asyncio.sleep(chance.choice((0.2, 0.8, 2.0)) * chance.random())
        died = loop.time()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(until, lambda: not server.agents(), "the end of all agents", 5)
        self.orphans = max(self.orphans, loop.time() - died)
        self.kills += 1
        if chance.random() < 0.25:  # and once more while it recovers
            await asyncio.to_thread(server.start, ready=False)
            await asyncio.sleep(chance.uniform(0.0, 0.4))
            await asyncio.to_thread(server.kill)
            self.early += 1
        await asyncio.to_thread(server.start, cold=cold)

    async def _check(self, load: Load) -> None:
        client, run = self.client, self._run
        prompt = f"echo last of {load.session}"
        load.whole[prompt] = f"last of {load.session}"
        await client.submit(load.session, prompt, "last")
        history = await fetch(client, load.session)
        await load.reader.until(len(history.events))
        history.copy, history.heard, history.whole = load.reader.copy, heard(self.server.witness), load.whole
        history.policy = load.policy
        for fault in (*check(history), *load.reader.faults):
            run.violate(fault)
        last = history.turns[-1]
        run.check(last["outcome"] == "completed", f"{load.session[:8]} is not usable: {last['error']}")
        self.found["events"] += len(history.events)
        self.found["turns"] += len(history.turns)
        self.found["turns_cut_off"] += sum(turn["outcome"] == "interrupted" for turn in history.turns)


def prove(run: Run) -> None:
    with zygote(run.source) as made:
        asyncio.run(_run_all(run, made))


async def _run_all(run: Run, made: Zygote) -> None:
    number = 1 if run.short else VICTIMS
    shares = [run.size // number + (at < run.size % number) for at in range(number)]
    victims = [Victim(run, made, at, share) for at, share in enumerate(shares)]

    def report() -> None:
        kills = sum(victim.kills for victim in victims)
        acks = sum(len(victim.client.acks) for victim in victims)
        run.progress(f"{kills} of {run.size} kills, {acks} acknowledged")

    await asyncio.gather(*(victim.live(report) for victim in victims))
    starts = sorted(secs for victim in victims for secs in victim.server.starts)
    early = sum(victim.early for victim in victims)
    run.figure(
        **sum((victim.found for victim in victims), Counter[str]()),
        kills=run.size + early,
        kills_during_start_or_recovery=early,
        acknowledged_prompts=sum(
            len({(ack.session, ack.key) for ack in victim.client.acks}) for victim in victims
        ),
        answers_cut_off=sum(victim.client.cuts for victim in victims),
        restart_secs_p50=round(statistics.median(starts), 2),
        restart_secs_max=round(starts[-1], 2),
        agents_gone_after_secs_max=round(max(victim.orphans for victim in victims), 2),
    )
