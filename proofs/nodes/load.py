"""What goes on while nodes are disturbed: sessions are prompted and read at whichever node there is."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from proofs.kit.http import Cut, Reply, request, stream
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck

SESSIONS: Final = 6
END_SECS: Final = 120.0
ANSWER_SECS: Final = 6.0
PAUSE: Final = 0.05
MOST_OPEN: Final = 5
"""Turns of a session: what waits after the last round has to be run as well."""
LONG: Final = 16
"""Chunks of a long turn, four in a second: its node is about to write when something happens to it."""


@dataclass
class Talk:
    """One session, what was acknowledged of it, and what one reader saw."""

    session: str
    acknowledged: dict[int, str] = field(default_factory=dict)
    seen: list[int] = field(default_factory=list)
    told: dict[int, bytes] = field(default_factory=dict)
    ended: int = 0  # turns, as the reader saw it


class Load:
    def __init__(self, run: Run, nodes: Sequence[Server], token: str) -> None:
        self.done: Counter[str] = Counter()
        self.talks: list[Talk] = []
        self._run = run
        self._nodes = nodes
        self._token = token
        self._is_over = False
        self._talking: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self.talks = [Talk(await self.make_session()) for _ in range(SESSIONS)]
        self._talking = [asyncio.create_task(self._talk(n, talk)) for n, talk in enumerate(self.talks)]
        self._reading = [asyncio.create_task(self._read(talk)) for talk in self.talks]

    async def finish(self) -> None:
        """Until every prompt is acknowledged. Readers go on."""
        self._is_over = True
        await asyncio.gather(*self._talking)

    async def close(self) -> None:
        for task in (*self._talking, *self._reading):
            task.cancel()
        await asyncio.gather(*self._talking, *self._reading, return_exceptions=True)

    async def make_session(self, nodes: Sequence[Server] = ()) -> str:
        reply = await self.ask(
            "POST", "/sessions", {"agent": "scripted", "on_interrupt": "hold"}, nodes=nodes
        )
        return str(reply["session_id"])

    async def wait_ended(self, talk: Talk) -> None:
        end = asyncio.get_running_loop().time() + END_SECS
        while True:
            page = await self.ask("GET", f"/sessions/{talk.session}/turns?limit=1000")
            if all(turn["state"] == "ended" for turn in page["turns"]):
                return
            if asyncio.get_running_loop().time() > end:
                raise Stuck(f"turns of {talk.session} did not end within {END_SECS:g} s")
            await asyncio.sleep(PAUSE)

    async def wait_read(self, talk: Talk, head: int) -> None:
        end = asyncio.get_running_loop().time() + END_SECS
        while len(talk.seen) < head and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(PAUSE)

    async def log(self, node: Server, session: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            path = f"/sessions/{session}/events?limit=1000&after={after}"
            page = await self.ask("GET", path, nodes=[node])
            if not page["events"]:
                return found
            found += page["events"]

    async def ask(
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
                    node.port, method, path, self._token, body=body, headers=headers, seconds=ANSWER_SECS
                )
                if reply.ok:
                    return json.loads(reply.body)
                self.done[f"refused_{reply.status}"] += 1
            await asyncio.sleep(PAUSE)
        raise Stuck(f"{method} {path}: no node answered within {END_SECS:g} s; the last said {reply}")

    async def _talk(self, number: int, talk: Talk) -> None:
        """Prompt whichever node is there; one that did not answer is asked again, perhaps elsewhere."""
        count = 0
        while not self._is_over:
            count += 1
            words = f"{number}.{count}"
            prompt = self._make_prompt(words)
            path = f"/sessions/{talk.session}/turns"
            reply = await self.ask("POST", path, {"prompt": prompt}, key=f"k-{words}")
            talk.acknowledged[int(reply["turn_index"])] = prompt
            await asyncio.sleep(self._run.random.uniform(0.5, 3))
            while len(talk.acknowledged) - talk.ended > MOST_OPEN and not self._is_over:
                await asyncio.sleep(PAUSE)

    def _make_prompt(self, words: str) -> str:
        chunks = self._run.random.choice((1, 2, LONG))
        return "\nsleep 0.25\n".join(f"echo {words}:{chunk}" for chunk in range(chunks))

    async def _read(self, talk: Talk) -> None:
        """Follow at one node after the other, from where the last one ended."""
        path = f"/sessions/{talk.session}/events"
        while True:
            after = talk.seen[-1] if talk.seen else 0
            node = self._run.random.choice(self._nodes)
            with suppress(Cut, TimeoutError):
                async with asyncio.timeout(3):
                    async for frame in stream(node.port, path, self._token, after):
                        if frame is not None and frame.seq > 0:
                            talk.seen.append(frame.seq)
                            talk.told[frame.seq] = frame.data
                            talk.ended += json.loads(frame.data)["type"] == "turn.ended"
            await asyncio.sleep(PAUSE)
