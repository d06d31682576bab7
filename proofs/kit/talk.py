"""What the clients of one session do to it in a day, ordinary and hard things mixed."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from proofs.kit.client import Client
from proofs.kit.http import Cut
from proofs.kit.server import Stuck

QUEUE = 4
"""So many prompts later the session is left alone until it has answered all of them."""


class Talk:
    """One session. `work` goes on until `working` is taken back."""

    def __init__(self, client: Client, session: str, seed: str, count: Counter[str]) -> None:
        """`count` is told what was done, and how often."""
        self.session = session
        self.client = client
        self.whole: dict[str, str] = {}
        self.working = False
        self._count = count
        self._chance = random.Random(seed)
        self._said = 0
        self._path = f"/sessions/{session}"
        self._deeds: tuple[tuple[int, Callable[[], Awaitable[Any]]], ...] = (
            (30, self.prompt),
            (12, self.queue),
            (10, self.cancel),
            (8, self.hang_up),
            (8, self.ask_permission),
            (6, self.undo_and_redo),
            (3, self.clear),
            (4, self.fork),
            (4, self.carry_over),
            (6, self.look),
            (4, self.misbehave),
            (2, self.close),
        )

    async def work(self) -> None:
        weights = [weight for weight, _ in self._deeds]
        self.working, settled = True, self._said
        while self.working:
            (deed,) = self._chance.choices([deed for _, deed in self._deeds], weights)
            try:
                await deed()
            except Cut:
                await asyncio.sleep(0.1)
            self._count[deed.__name__] += 1
            if self._said - settled >= QUEUE:  # else it grows for ever
                await self.client.wait_ended(self.session)
                settled = self._said

    async def submit(self, script: str, whole: str | None = None, **more: Any) -> int:
        """One prompt, whose text nobody else sends."""
        prompt, key = self._make_prompt(script)
        if whole is not None:
            self.whole[prompt] = key + whole
        return await self.client.submit(self.session, prompt, key, **more)

    def _make_prompt(self, script: str) -> tuple[str, str]:
        """With its key."""
        self._said += 1
        key = f"{self.session[:8]}-{self._said}"
        return f"echo {key}\n{script}", key

    async def prompt(self) -> None:
        count = self._chance.randint(1, 20)
        said = "".join(f"{str(number).ljust(11, '.')} " for number in range(1, count + 1))
        await self.submit(f"chunks {count} 12 10", said, wait=self._chance.random() < 0.6)

    async def queue(self) -> None:
        turns = [await self.submit("write note.txt hello\ntools 2 20") for _ in range(3)]
        await self.client.call("DELETE", f"{self._path}/turns/{turns[-1]}")

    async def cancel(self) -> None:
        await self.submit(self._chance.choice(("hang", "sleep 5", "hang-hard", "chunks 400 20 5")))
        await asyncio.sleep(self._chance.random() * 0.3)
        if self._chance.random() < 0.3:
            await self.submit("echo instead", if_busy=self._chance.choice(("interrupt", "rollback")))
        else:
            await self.client.call("POST", f"{self._path}/cancel", {"queued": self._chance.random() < 0.3})

    async def hang_up(self) -> None:
        """A caller that does not wait for the answer, and asks again later; the turn goes on."""
        prompt, key = self._make_prompt("chunks 5 20 10")
        with suppress(TimeoutError, Cut):  # where the server is killed meanwhile, it may have been written
            async with asyncio.timeout(self._chance.random() * 0.3):
                await self.client.call("GET", f"{self._path}/export?events=true")
                await self.client.call("POST", f"{self._path}/turn", {"prompt": prompt}, key)
        await self.client.submit(self.session, prompt, key)

    async def ask_permission(self) -> None:
        await self.submit("ask May I?\necho done")
        for _ in range(20):
            reply = await self.client.call("GET", f"{self._path}/permissions")
            waiting = [one for one in reply.json().get("permissions", ()) if one["state"] == "pending"]
            if waiting and self._chance.random() < 0.7:
                decision = {"decision": self._chance.choice(("allow_once", "reject"))}
                path = f"{self._path}/permissions/{waiting[0]['permission_id']}"
                await self.client.call("POST", path, decision)
                return
            await asyncio.sleep(0.05)

    async def undo_and_redo(self) -> None:
        files = self._chance.random() < 0.3
        await self.client.call("POST", f"{self._path}/undo", {"turns": 1, "files": files})
        if self._chance.random() < 0.6:
            await self.client.call("POST", f"{self._path}/redo", {"files": files})

    async def clear(self) -> None:
        await self.client.call("POST", f"{self._path}/clear", {})

    async def fork(self) -> None:
        reply = await self.client.call("POST", f"{self._path}/fork", {})
        if reply.ok:
            await self._use_up(str(reply.json()["session_id"]))

    async def carry_over(self) -> None:
        export = await self.client.call("GET", f"{self._path}/export")
        if export.ok:
            body = {"format": "clawdforge", "agent": "scripted", "export": export.json()}
            reply = await self.client.call("POST", "/sessions/import", body)
            if reply.ok:
                await self._use_up(str(reply.json()["session_id"]))

    async def _use_up(self, session: str) -> None:
        """A session that somebody needed for a moment."""
        await self.client.call("POST", f"/sessions/{session}/turns", {"prompt": "echo twin"})
        if self._chance.random() < 0.5:
            await self.client.call("POST", f"/sessions/{session}/cancel", {"queued": True})
        with suppress(Stuck):  # it is gone already when the answer to an earlier try was cut off
            await self.client.repeat("POST", f"/sessions/{session}/purge", {})

    async def look(self) -> None:
        for path in ("/search?q=echo", "/sessions?limit=50", f"{self._path}/messages", f"{self._path}/usage"):
            await self.client.call("GET", path)

    async def misbehave(self) -> None:
        await self.submit(self._chance.choice(("crash 3", "garbage 20", "children 3", "close-stdout")))

    async def close(self) -> None:
        await self.client.repeat("DELETE", self._path)
        await self.client.repeat("POST", f"{self._path}/reopen")
