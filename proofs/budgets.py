"""Budgets: many prompts at once against room for a quarter of them, while the server is killed."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

from proofs.kit.client import PAUSE, Client
from proofs.kit.http import Cut
from proofs.kit.report import Run
from proofs.kit.server import ADMIN, Server, Stuck, zygote

SHORT, FULL = 1, 30
PROMPTS, ROOM, SESSIONS, KILLS = 200, 50, 20, 3
EACH_USD = 0.01
ANSWER_SECS = 120.0


def prove(run: Run) -> None:
    with zygote(run.source) as made, Server(run.folder, made, source=run.source) as server:
        server.start()
        total: Counter[str] = Counter()
        for number in range(run.size):
            total.update(asyncio.run(_Round(run, server, number).play()))
            run.progress(f"{number + 1} of {run.size} rounds")
    run.figure(rounds=run.size, **total)


class _Round:
    """One app with a budget for `ROOM` turns, and `PROMPTS` prompts that all come at once.

    Each turn holds what it costs, whether its agent tells it or is killed. So exactly `ROOM` get in, and
    whatever happens, the budget never counts more.
    """

    def __init__(self, run: Run, server: Server, number: int) -> None:
        self._run = run
        self._server = server
        self._name = f"proof-{number}"
        self._client = Client(server.port, server.token(self._name))
        self._operator = Client(server.port, ADMIN)
        self._accepted: dict[str, tuple[str, int]] = {}  # by prompt: session and turn
        self._refused: set[str] = set()
        self._answered = asyncio.Event()
        self._replayed = 0

    async def play(self) -> dict[str, int]:
        body = {
            "app_name": self._name,
            "max_cost_usd": ROOM * EACH_USD,
            "share_cost_usd": EACH_USD,
            "period": "total",
        }
        await self._operator.repeat("PUT", "/admin/budgets", body)
        sessions = [await self._client.session(retention="keep") for _ in range(SESSIONS)]
        sending = asyncio.gather(*(self._send(sessions[n % SESSIONS], n) for n in range(PROMPTS)))
        await asyncio.gather(sending, self._kill_sometimes(), self._watch(sending))
        ended = [turn for session in sessions for turn in await self._client.wait_ended(session)]
        await self._check(sessions, ended)
        outcomes = Counter(str(turn["outcome"]) for turn in ended)
        return {
            "prompts": PROMPTS,
            "accepted": len(self._accepted),
            "refused": len(self._refused),
            "kills": KILLS,
            "cut_off": outcomes["interrupted"],
            "answers_that_were_lost": self._replayed,
        }

    async def _send(self, session: str, number: int) -> None:
        """Send a prompt with its key until the server says yes or no."""
        prompt = f"cost {EACH_USD}\nsleep 0.02\necho {number}"
        end = asyncio.get_running_loop().time() + ANSWER_SECS
        while asyncio.get_running_loop().time() < end:
            try:
                reply = await self._client.call(
                    "POST", f"/sessions/{session}/turns", {"prompt": prompt}, f"key-{number}"
                )
            except Cut:
                await asyncio.sleep(PAUSE)
                continue
            found = reply.json()
            if reply.ok:
                self._accepted[prompt] = (session, int(found["turn_index"]))
                self._replayed += bool(found["replayed"])
            elif found["code"] == "budget_exceeded":
                self._refused.add(prompt)
            else:
                await asyncio.sleep(PAUSE)
                continue
            self._answered.set()
            return
        raise Stuck(f"prompt {number} was never answered")

    async def _kill_sometimes(self) -> None:
        """Kill the server after some answers, most of them while there is room."""
        for after in sorted(self._run.random.randrange(ROOM) for _ in range(KILLS)):
            while len(self._accepted) + len(self._refused) < after:
                self._answered.clear()
                await self._answered.wait()
            await asyncio.sleep(self._run.random.random() / 10)  # any moment will do
            await asyncio.to_thread(self._server.kill)
            await asyncio.to_thread(self._server.start)

    async def _watch(self, sending: "asyncio.Future[Any]") -> None:
        """Whoever looks never sees more than there is."""
        while not sending.done():
            try:
                reply = await self._client.call("GET", "/budgets")
            except Cut:
                await asyncio.sleep(PAUSE)
                continue
            if reply.ok:
                for words in _find_excess(reply.json()["budgets"][0]):
                    self._run.violate(f"{self._name}: {words}")
            await asyncio.sleep(PAUSE)

    async def _check(self, sessions: list[str], turns: list[Any]) -> None:
        there = {turn["prompt"] for turn in turns}
        named = set(self._accepted)
        check = self._run.check
        check(len(there) == len(turns), f"{self._name}: {len(turns)} turns for {len(there)} prompts")
        check(there == named, f"{self._name}: lost {len(named - there)}, unasked {len(there - named)}")
        check(not there & self._refused, f"{self._name}: refused prompts have turns")
        check(len(turns) == ROOM, f"{self._name}: {len(turns)} turns got in where there is room for {ROOM}")
        (budget,) = (await self._client.repeat("GET", "/budgets"))["budgets"]
        for words in _find_excess(budget):
            self._run.violate(f"{self._name}: {words}")
        counted = _count(budget["spent"]) + _count(budget["estimated"])
        check(counted == len(turns), f"{self._name}: {counted} of {len(turns)} turns are counted")
        check(not _count(budget["reserved"]), f"{self._name}: {_count(budget['reserved'])} shares are held")
        refused = await self._client.call(
            "POST", f"/sessions/{sessions[0]}/turns", {"prompt": "echo one more"}
        )
        check(refused.status == 429, f"{self._name}: one more turn is answered {refused.status}")


def _find_excess(budget: Any) -> Iterator[str]:
    taken = sum(_count(budget[name]) for name in ("spent", "estimated", "reserved"))
    if taken > ROOM:
        yield f"{taken} shares are spent or held, of {ROOM}"


def _count(money: Any) -> int:
    """How many turns an amount stands for."""
    return round(float(money["cost_usd"]) / EACH_USD)
