"""Notices that the program behind an adapter is gone while the adapter says nothing of it.

Some agents are two programs: one that speaks ACP, and its child, which does the work. When the child is
killed or crashes, the first may wait for it for ever, and the turn with it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.jsonrpc.rpc import Connection
from clawdforge.wire.errors import AgentError, AgentFailed, AgentLost

LOOK_SECS: Final = 2.0


class WorkerWatch:
    """Of one agent. `silent_secs` is how long it may say nothing without a child; None: it is no adapter."""

    def __init__(self, process: AgentProcess, connection: Connection, silent_secs: float | None) -> None:
        self.is_lost = False
        self._process = process
        self._connection = connection
        self._silent_secs = silent_secs
        self._had_child = False

    def during_prompt(self) -> AbstractContextManager[None]:
        """In the block the connection is closed when the child is lost, which ends whatever waits there."""
        return nullcontext() if self._silent_secs is None else self._watching(self._silent_secs)

    @contextmanager
    def _watching(self, silent_secs: float) -> Iterator[None]:
        watching = asyncio.create_task(self._watch(silent_secs), name="worker watch")
        try:
            yield
        finally:
            watching.cancel()

    def explain(self, name: str, *, begun: bool, stderr: str) -> AgentError:
        """What the prompt fails with; if nobody had begun with it, another process can be given it."""
        words = f"{name}: the program behind it has ended, and it did not say so"
        if begun:
            return AgentFailed(f"{words}; send the prompt again", stderr=stderr)
        return AgentLost(words, stderr=stderr, heard=False)

    async def _watch(self, silent_secs: float) -> None:
        loop = asyncio.get_running_loop()
        said, since = -1, loop.time()
        while True:
            has_child = await asyncio.to_thread(self._process.has_child)
            self._had_child = self._had_child or has_child
            now_said = self._connection.bytes_read
            if has_child or not self._had_child or self._connection.is_asked or now_said != said:
                said, since = now_said, loop.time()
            elif loop.time() - since >= silent_secs:
                break
            await asyncio.sleep(min(LOOK_SECS, silent_secs / 4))
        self.is_lost = True
        await self._connection.close()
