"""The process that makes the noise, so that whoever is timed does not share an interpreter with it.

python -m proofs.noise.hands      # orders on stdin, one JSON object a line; an answer to each on stdout
"""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from proofs.kit.http import Cut
from proofs.kit.server import Stuck
from proofs.noise.way import Noisy, Way
from proofs.noise.ways import WAYS

NICE = 19
"""They stand for machines of their own: what is proved is the server's fairness, not the kernel's.

Where nothing is timed they have their part of the machine: beside other work they would make no noise.
"""

REST_SECS = 0.05


class Hands:
    def __init__(self) -> None:
        self._noisy: Noisy | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def obey(self, order: dict[str, Any]) -> Any:
        do = order.pop("do")
        if do == "prepare":
            return await self._prepare(**order)
        if do == "begin":
            return self._begin(**order)
        assert self._noisy is not None
        if do == "end":
            await self._end()
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()
        return dict(self._noisy.count)

    async def _prepare(self, way: str, folder: str, **given: Any) -> None:
        if given["full"]:
            _give_way()
        self._noisy = Noisy(folder=Path(folder), **given)
        found = _find(way)
        if found.prepare is not None:
            await found.prepare(self._noisy)
        self._noisy.count.clear()

    def _begin(self, way: str) -> None:
        assert self._noisy is not None
        found = _find(way)
        self._tasks = [asyncio.create_task(_go_on(found, self._noisy)) for _ in range(found.hands)]

    async def _end(self) -> None:
        assert self._noisy is not None
        for task in self._tasks:
            task.cancel()
        done = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._noisy.hang_up()
        for found in done:
            if isinstance(found, Exception):
                raise found


def _find(name: str) -> Way:
    return next(way for way in WAYS if way.name == name)


async def _go_on(way: Way, noisy: Noisy) -> None:
    while True:
        try:
            await way.act(noisy)
        except (Cut, Stuck, OSError) as error:  # the server defends itself: come again
            noisy.count[f"refused: {error!r}"[:200]] += 1
            await asyncio.sleep(REST_SECS)
        await asyncio.sleep(0)


def _give_way() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with suppress(OSError):  # `nice` counts among the processes of one session, and this between sessions
        Path("/proc/self/autogroup").write_text(str(NICE))


async def main() -> None:
    os.setsid()
    hands = Hands()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        try:
            answer: Any = {"done": await hands.obey(json.loads(line))}
        except Exception as error:
            answer = {"failed": repr(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
