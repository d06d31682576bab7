"""Kill -9 at random moments, also in the middle of recovery, while eight sessions work and are read."""

import asyncio
import statistics

from proofs.kit.client import Client, Reader
from proofs.kit.history import check, fetch, heard
from proofs.kit.report import Run
from proofs.kit.server import Server, until, zygote

SHORT, FULL = 5, 1000
SESSIONS = 8
POLICIES = ("hold", "hold", "continue", "retry")
COLD_EVERY = 25


def prompt_of(key: str, chunks: int) -> tuple[str, str]:
    """A script that is unique, and what it says when it is not cut off."""
    whole = "".join(f"{str(number).ljust(11, '.')} " for number in range(1, chunks + 1))
    return f"chunks {chunks} 12 8\necho {key}", whole + key


class Load:
    """What clients do to one session until they are told to stop."""

    def __init__(self, run: Run, client: Client, session: str, number: int) -> None:
        self.session = session
        self.reader = Reader(client, session)
        self.whole: dict[str, str] = {}
        self.working = True
        self._client = client
        self._chance = run.random
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
                await self._client.settled(self.session)


def prove(run: Run) -> None:
    with zygote(run.source) as made, Server(run.folder, made, source=run.source) as server:
        server.start()
        asyncio.run(_loop(run, server))


async def _loop(run: Run, server: Server) -> None:
    client = Client(server.port, server.token())
    loads = [
        Load(run, client, await client.session(on_interrupt=POLICIES[n % 4], retention="keep"), n)
        for n in range(SESSIONS)
    ]
    work = [asyncio.create_task(load.work()) for load in loads]
    readers = [asyncio.create_task(load.reader.follow()) for load in loads]
    orphans, early = 0.0, 0
    loop = asyncio.get_running_loop()
    for count in range(run.size):
        await asyncio.sleep(run.random.choice((0.2, 0.8, 2.0)) * run.random.random())
        died = loop.time()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(until, lambda: not server.agents(), "the end of all agents", 5)
        orphans = max(orphans, loop.time() - died)
        if run.random.random() < 0.25:  # and once more while it recovers
            server.start(ready=False)
            await asyncio.sleep(run.random.uniform(0.0, 0.4))
            await asyncio.to_thread(server.kill)
            early += 1
        await asyncio.to_thread(server.start, cold=count % COLD_EVERY == COLD_EVERY - 1)
        run.progress(f"{count + 1} of {run.size} kills, {len(client.acks)} acknowledged")
        failed = [task for task in (*work, *readers) if task.done()]
        for task in failed:
            await task
    for load in loads:
        load.working = False
    await asyncio.gather(*work)
    await _verdict(run, server, client, loads)
    for task in readers:
        task.cancel()
    ordered = sorted(server.starts)
    run.figure(
        kills=run.size + early,
        kills_during_start_or_recovery=early,
        acknowledged_prompts=len({(ack.session, ack.key) for ack in client.acks}),
        answers_cut_off=client.cuts,
        restart_secs_p50=round(statistics.median(ordered), 2),
        restart_secs_max=round(ordered[-1], 2),
        agents_gone_after_secs_max=round(orphans, 2),
    )


async def _verdict(run: Run, server: Server, client: Client, loads: list[Load]) -> None:
    events = turns = interrupted = 0
    for load in loads:
        prompt = f"echo last of {load.session}"
        load.whole[prompt] = f"last of {load.session}"
        await client.submit(load.session, prompt, "last")
        history = await fetch(client, load.session)
        await load.reader.until(len(history.events))
        history.copy, history.heard, history.whole = load.reader.copy, heard(server.witness), load.whole
        for fault in (*check(history), *load.reader.faults):
            run.violate(fault)
        last = history.turns[-1]
        run.check(last["outcome"] == "completed", f"{load.session[:8]} is not usable: {last['error']}")
        events += len(history.events)
        turns += len(history.turns)
        interrupted += sum(turn["outcome"] == "interrupted" for turn in history.turns)
    run.figure(turns=turns, events=events, turns_cut_off=interrupted)
