"""Nodes: three servers share a Postgres; they are killed, frozen and stopped, and no session is torn."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from proofs.kit.http import Cut, Reply, request, stream
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, zygote
from tests.postgres import run_postgres

SHORT, FULL = 2, 200
"""How often a node is disturbed."""
NODES: Final = 3
SESSIONS: Final = 6
LEASE_SECS: Final = 3
END_SECS: Final = 120.0
PAUSE: Final = 0.05
WAYS: Final = ("kill", "freeze", "stop")
PROMPTS: Final = ("echo {0}", "echo {0}\nsleep 0.3\necho {0}", "echo {0}\nsleep 4\necho {0}\necho {0}")
"""The last one goes on while its node is frozen: what it says then, the node hears when it was given up."""


def prove(run: Run) -> None:
    with ExitStack() as stack:
        database = stack.enter_context(run_postgres()).make_database()
        made = stack.enter_context(zygote(run.source))
        env = {
            "CLAWDFORGE_DATABASE_URL": database,
            "CLAWDFORGE_LEASE_SECS": str(LEASE_SECS),
            "CLAWDFORGE_STOP_GRACE_SECS": "1",
        }
        nodes = [
            stack.enter_context(Server(run.folder / f"n{number}", made, source=run.source, env=env))
            for number in range(NODES)
        ]
        for node in nodes:
            node.start()
        asyncio.run(_Play(run, nodes).play())
        for node in nodes:
            node.stop()
        left = [pid for node in nodes for pid in node.agents()]
        run.check(not left, f"agents live on without their nodes: {left}")


@dataclass
class _Talk:
    """One session, what was acknowledged of it, and what one reader saw."""

    session: str
    acknowledged: dict[int, str] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)


class _Play:
    def __init__(self, run: Run, nodes: Sequence[Server]) -> None:
        self._run = run
        self._nodes = nodes
        self._token = nodes[0].token()
        self._is_over = False
        self._done: Counter[str] = Counter()

    async def play(self) -> None:
        talks = [_Talk(await self._make_session()) for _ in range(SESSIONS)]
        talking = [asyncio.create_task(self._talk(talk, number)) for number, talk in enumerate(talks)]
        reading = [asyncio.create_task(self._read(talk)) for talk in talks]
        try:
            for number in range(self._run.size):
                await self._disturb()
                self._run.progress(f"{number + 1} of {self._run.size} disturbances")
            self._is_over = True
            await asyncio.gather(*talking)
            for talk in talks:
                await self._check(talk)
            await self._catch_up(talks)
        finally:
            for task in (*talking, *reading):
                task.cancel()
            await asyncio.gather(*talking, *reading, return_exceptions=True)
        turns = sum(len(talk.acknowledged) for talk in talks)
        completed = self._done["completed"]
        self._run.check(completed >= turns / 2 > 0, f"only {completed} of {turns} turns were completed")
        self._run.figure(turns=turns, events=sum(len(talk.seen) for talk in talks), **self._done)

    async def _make_session(self) -> str:
        reply = await self._ask("POST", "/sessions", {"agent": "scripted", "on_interrupt": "hold"})
        return str(reply["session_id"])

    async def _talk(self, talk: _Talk, number: int) -> None:
        """Prompt whichever node is there; one that did not answer is asked again, perhaps elsewhere."""
        count = 0
        while not self._is_over:
            count += 1
            words = f"{number}.{count}"
            prompt = self._run.random.choice(PROMPTS).format(words)
            path = f"/sessions/{talk.session}/turns"
            reply = await self._ask("POST", path, {"prompt": prompt}, key=f"k-{words}")
            talk.acknowledged[int(reply["turn_index"])] = prompt
            await asyncio.sleep(self._run.random.uniform(0.5, 2.5))

    async def _read(self, talk: _Talk) -> None:
        """Follow at one node after the other, from where the last one ended."""
        while True:
            after = talk.seen[-1] if talk.seen else 0
            node = self._run.random.choice(self._nodes)
            with suppress(Cut, TimeoutError):
                async with asyncio.timeout(3):
                    async for frame in stream(
                        node.port, f"/sessions/{talk.session}/events", self._token, after
                    ):
                        if frame is not None and frame.seq > 0:
                            talk.seen.append(frame.seq)
            await asyncio.sleep(PAUSE)

    async def _disturb(self) -> None:
        await asyncio.sleep(self._run.random.uniform(0.5, 1.5))
        node, way = self._run.random.choice(self._nodes), self._run.random.choice(WAYS)
        self._done[f"{way}s"] += 1
        if way == "freeze":
            node.freeze()
            await asyncio.sleep(self._run.random.uniform(0.5, 3.0) * LEASE_SECS)
            node.thaw()
            return
        await asyncio.to_thread(node.kill if way == "kill" else node.stop)
        await asyncio.sleep(self._run.random.uniform(0, 2 * LEASE_SECS))
        await asyncio.to_thread(node.start)

    async def _check(self, talk: _Talk) -> None:
        """Every prompt that was acknowledged became one turn, which began at most once and ended once."""
        session = talk.session
        await self._wait_ended(talk)
        logs = [await self._log(node, session) for node in self._nodes]
        self._run.check(all(log == logs[0] for log in logs), f"{session}: nodes tell different logs")
        events = logs[0]
        seqs = [event["seq"] for event in events]
        self._run.check(seqs == list(range(1, len(seqs) + 1)), f"{session}: numbers with gaps: {seqs}")
        begun = Counter(event["turn"] for event in events if event["type"] == "turn.started")
        ended = Counter(event["turn"] for event in events if event["type"] == "turn.ended")
        self._run.check(max(begun.values(), default=0) <= 1, f"{session}: begun twice: {begun}")
        self._run.check(
            ended == Counter(list(talk.acknowledged)), f"{session}: ended {ended}, not {talk.acknowledged}"
        )
        for turn, prompt in talk.acknowledged.items():
            self._check_words(session, turn, prompt, [event for event in events if event["turn"] == turn])

    def _check_words(self, session: str, turn: int, prompt: str, events: list[dict[str, Any]]) -> None:
        """What a turn says is its own, in order, and all of it if it was completed."""
        said = [event["content"] for event in events if event["type"] == "text"]
        wanted = [line.removeprefix("echo ") for line in prompt.splitlines() if line.startswith("echo ")]
        outcome = next(event["outcome"] for event in events if event["type"] == "turn.ended")
        self._done[outcome] += 1
        self._run.check(outcome in ("completed", "interrupted"), f"{session} turn {turn}: {outcome}")
        if outcome == "completed":
            self._run.check(said == wanted, f"{session} turn {turn}: {said} instead of {wanted}")
        else:
            self._run.check(said == wanted[: len(said)], f"{session} turn {turn}: {said}, which nobody asked")
        where = [event["type"] for event in events]
        self._run.check(where[-1] == "turn.ended", f"{session} turn {turn}: words after its end: {where}")

    async def _wait_ended(self, talk: _Talk) -> None:
        end = asyncio.get_running_loop().time() + END_SECS
        while True:
            page = await self._ask("GET", f"/sessions/{talk.session}/turns?limit=1000")
            if all(turn["state"] == "ended" for turn in page["turns"]):
                return
            if asyncio.get_running_loop().time() > end:
                raise Stuck(f"turns of {talk.session} did not end within {END_SECS:g} s")
            await asyncio.sleep(PAUSE)

    async def _log(self, node: Server, session: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            path = f"/sessions/{session}/events?limit=1000&after={after}"
            page = await self._ask("GET", path, nodes=[node])
            if not page["events"]:
                return found
            found += page["events"]

    async def _catch_up(self, talks: list[_Talk]) -> None:
        for talk in talks:
            head = len(await self._log(self._nodes[0], talk.session))
            end = asyncio.get_running_loop().time() + END_SECS
            while len(talk.seen) < head and asyncio.get_running_loop().time() < end:
                await asyncio.sleep(PAUSE)
            wanted = list(range(1, head + 1))
            self._run.check(talk.seen == wanted, f"{talk.session}: a reader saw {talk.seen} of {head}")

    async def _ask(
        self, method: str, path: str, body: Any = None, key: str = "", nodes: Sequence[Server] = ()
    ) -> Any:
        """Any node's answer. One that does not answer well is asked again later, or another one is."""
        headers = {"Idempotency-Key": key} if key else {}
        end = asyncio.get_running_loop().time() + END_SECS
        reply: Reply | None = None
        while asyncio.get_running_loop().time() < end:
            node = self._run.random.choice(nodes or self._nodes)
            with suppress(Cut):
                reply = await request(
                    node.port, method, path, self._token, body=body, headers=headers, seconds=2 * LEASE_SECS
                )
                if reply.ok:
                    return json.loads(reply.body)
                self._done[f"refused {reply.status}"] += 1
            await asyncio.sleep(PAUSE)
        raise Stuck(f"{method} {path}: no node answered within {END_SECS:g} s; the last said {reply}")
