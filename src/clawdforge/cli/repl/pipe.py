"""The conversation over a pipe: a line in, an answer out, no colour and no prompt."""

import asyncio
import sys
from typing import Final

from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Item, clean
from clawdforge.cli.output.painter import Painter
from clawdforge.cli.repl.commands import Commands, Leave
from clawdforge.cli.repl.conversation import Talk
from clawdforge.cli.target.connect import failure
from clawdforge.client.errors import ForgeError
from clawdforge.wire.event import Event
from clawdforge.wire.turn import Decision

ANSWERS: Final = {"y": Decision.ALLOW_ONCE, "yes": Decision.ALLOW_ONCE, "a": Decision.ALLOW_ALWAYS}
"""Whatever else is said is a no."""

WIDTH: Final = 100


class PlainFace:
    """The agent's words go to stdout as they come. Everything else goes to stderr."""

    def __init__(self, prompt: str) -> None:
        self._first = prompt
        self._painter = Painter()
        self._asks: asyncio.Queue[None] = asyncio.Queue()
        self._open_line = False

    def show(self, items: list[Item]) -> None:
        """Notes; an answer was printed as it came."""
        lines = [item for item in items if isinstance(item, list)]
        if lines and not self._open_line:
            sys.stderr.write(self._painter.paint(list(lines), WIDTH))
            sys.stderr.flush()

    def tell(self, items: list[Item]) -> None:
        sys.stdout.write(self._painter.paint(items, WIDTH))
        sys.stdout.flush()

    def event(self, event: Event) -> None:
        if event.type == "text":
            sys.stdout.write(clean(event.text))
            self._open_line = not event.text.endswith("\n")
        elif self._open_line:
            sys.stdout.write("\n")
            self._open_line = False
        sys.stdout.flush()
        if event.type == "permission.requested":
            self._asks.put_nowait(None)

    async def run(self, talk: Talk, commands: Commands) -> None:
        await talk.open(past=False)
        lines = [self._first] if self._first else []
        while True:
            line = lines.pop(0) if lines else await self._read()
            if line is None:
                return
            if not line.strip():
                continue
            try:
                if await commands.run(line):
                    continue
                await self._answer(talk, await talk.say(line))
            except Leave:
                return
            except ForgeError as error:
                self.show(render.note(failure(error).message))

    async def _read(self) -> str | None:
        """The next line; one that ends with a backslash goes on."""
        parts: list[str] = []
        while True:
            line = await asyncio.to_thread(sys.stdin.readline)
            if not line:
                return "\n".join(parts) if parts else None
            line = line.rstrip("\n")
            if not line.endswith("\\"):
                return "\n".join([*parts, line])
            parts.append(line[:-1])

    async def _answer(self, talk: Talk, turn_index: int) -> None:
        """Wait for the end of the turn. The next line answers what the agent asks; no line is a no."""
        ended = asyncio.create_task(talk.ended(turn_index))
        try:
            while not ended.done():
                asked = asyncio.create_task(self._asks.get())
                await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
                if asked.done() and talk.view.pending:
                    word = (await self._read() or "n").strip().lower()
                    await talk.decide(ANSWERS.get(word, Decision.REJECT))
                asked.cancel()
        finally:
            ended.cancel()
