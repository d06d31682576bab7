"""The conversation over a pipe: a line in, an answer out, no colour and no prompt."""

import asyncio
import sys
from typing import Final

from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Item, clean
from clawdforge.cli.output.painter import Painter
from clawdforge.cli.repl.commands import Commands, Leave
from clawdforge.cli.repl.conversation import Conversation
from clawdforge.cli.target.connect import failure_of
from clawdforge.client.errors import ForgeError
from clawdforge.wire.event import Event
from clawdforge.wire.turn import Decision

ANSWERS: Final = {"y": Decision.ALLOW_ONCE, "yes": Decision.ALLOW_ONCE, "a": Decision.ALLOW_ALWAYS}
"""Any other answer means no."""

WIDTH: Final = 0
"""Nothing is broken: who reads a pipe does that."""


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

    def show_reply(self, items: list[Item]) -> None:
        sys.stdout.write(self._painter.paint(items, WIDTH))
        sys.stdout.flush()

    def take_event(self, event: Event) -> None:
        if event.type == "text":
            sys.stdout.write(clean(event.text))
            self._open_line = not event.text.endswith("\n")
        elif self._open_line:
            sys.stdout.write("\n")
            self._open_line = False
        sys.stdout.flush()
        if event.type == "permission.requested":
            self._asks.put_nowait(None)

    async def run(self, conversation: Conversation, commands: Commands) -> None:
        await conversation.open(past=False)
        lines = [self._first] if self._first else []
        while True:
            line = lines.pop(0) if lines else await self._read_line()
            if line is None:
                return
            if not line.strip():
                continue
            try:
                if await commands.run(line):
                    continue
                await self._wait_for_answer(conversation, await conversation.say(line))
            except Leave:
                return
            except ForgeError as error:
                self.show(render.note(failure_of(error).message))

    async def _read_line(self) -> str | None:
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

    async def _wait_for_answer(self, conversation: Conversation, turn_index: int) -> None:
        """Wait until the turn ends. When the agent asks, the next line is the answer; no line means no."""
        ended = asyncio.create_task(conversation.wait_for_end(turn_index))
        try:
            while not ended.done():
                asked = asyncio.create_task(self._asks.get())
                await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
                if asked.done() and conversation.view.pending:
                    word = (await self._read_line() or "n").strip().lower()
                    await conversation.decide(ANSWERS.get(word, Decision.REJECT))
                asked.cancel()
        finally:
            ended.cancel()
