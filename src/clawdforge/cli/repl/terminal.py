"""A terminal with a line to type in below, and what happens above it, until Ctrl-D."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.patch_stdout import patch_stdout

from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Item
from clawdforge.cli.output.painter import painter
from clawdforge.cli.repl.commands import Commands, Leave
from clawdforge.cli.repl.completer import WordCompleter
from clawdforge.cli.repl.conversation import Talk
from clawdforge.cli.repl.keys import Keys
from clawdforge.cli.repl.style import SHEET, fragments
from clawdforge.cli.target.connect import failure
from clawdforge.cli.target.options import Target
from clawdforge.client.errors import ForgeError
from clawdforge.wire.event import Event

HISTORY_FILE: Final = "repl_history"
REDRAW_SECS: Final = 0.05


class TerminalFace:
    """Finished lines go into the terminal's own scrollback; only the few live lines are drawn again."""

    def __init__(self, target: Target, prompt: str) -> None:
        self._target = target
        self._first = prompt
        self._painter = painter(colour=target.colour)
        self._talk: Talk | None = None
        self._prompts: PromptSession[str] | None = None

    def show(self, items: list[Item]) -> None:
        if items:
            sys.stdout.write(self._painter.paint(items, self._width()))
            sys.stdout.flush()
        self._redraw()

    def tell(self, items: list[Item]) -> None:
        self.show(items)

    def event(self, event: Event) -> None:
        """Nothing but what is shown anyway."""

    async def run(self, talk: Talk, commands: Commands) -> None:
        self._talk = talk
        keys = Keys(talk, self)
        self._prompts = PromptSession(
            self._message,
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=self._status,
            history=self._history(),
            completer=WordCompleter(talk, commands),
            complete_while_typing=True,
            key_bindings=keys.bindings(),
            style=SHEET,
            color_depth=None if self._target.colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=False,
        )
        self._prompts.app.min_redraw_interval = REDRAW_SECS
        with patch_stdout(raw=True):
            self._greet(talk)
            await talk.open(past=True)  # until there is a line to type in, Ctrl-C ends the program
            with _signals(keys.interrupt):
                await self._converse(talk, commands, keys, self._prompts)
                await keys.finish()
        self._target.note(f"the session stays; `clawdforge -r {talk.session_id[:8]}` goes on with it")

    async def _converse(
        self, talk: Talk, commands: Commands, keys: Keys, prompts: PromptSession[str]
    ) -> None:
        with contextlib.suppress(EOFError, Leave):
            if self._first:
                self.show(render.prompt(self._first))
                await self._handle(keys, self._line(talk, commands, self._first))
            while True:
                text = await prompts.prompt_async(handle_sigint=False)
                await self._handle(keys, self._line(talk, commands, text))

    def _greet(self, talk: Talk) -> None:
        row = talk.row
        title = f"  {row['title']}" if row.get("title") else ""
        self.show(render.note(f"session {talk.session_id[:8]} · {row['agent']} in {row['cwd']}{title}"))

    async def _handle(self, keys: Keys, work: Coroutine[Any, Any, None]) -> None:
        """In a task of its own, which Ctrl-C can end without ending the conversation."""
        busy = asyncio.create_task(work)
        keys.take(busy)
        await asyncio.wait({busy})
        if not busy.cancelled():
            busy.result()

    async def _line(self, talk: Talk, commands: Commands, text: str) -> None:
        """A line that was typed: a command of ours, or words for the agent."""
        if not text.strip():
            return
        try:
            if not await commands.run(text):
                await talk.say(text)
        except ForgeError as error:
            self.show(render.note(failure(error).message, "bad"))

    def _message(self) -> StyleAndTextTuples:
        live = self._talk.view.live(self._width()) if self._talk and not get_app().is_done else []
        return [*fragments(live), ("class:you", "> ")]

    def _status(self) -> StyleAndTextTuples:
        talk = self._talk
        if talk is None:
            return []
        row, view = talk.row, talk.view
        parts = [str(row["agent"]), *([str(row["model"])] if row.get("model") else []), talk.session_id[:8]]
        parts.append(str(row["permission_mode"]).replace("_", " "))
        parts += [view.fill] if view.fill else []
        parts.append("working; Ctrl-C stops it" if view.running is not None else "/help")
        return [("class:bottom-toolbar", " · ".join(parts))]

    def _width(self) -> int:
        """Of the terminal itself: COLUMNS may be left over from whoever started us."""
        prompts = self._prompts
        return prompts.output.get_size().columns if prompts else shutil.get_terminal_size().columns

    def _redraw(self) -> None:
        if self._prompts is not None and self._prompts.app.is_running:
            self._prompts.app.invalidate()

    def _history(self) -> History:
        path = self._target.folder / HISTORY_FILE
        with contextlib.suppress(OSError):
            _own_file(path)
            return FileHistory(str(path))
        return InMemoryHistory()


@contextlib.contextmanager
def _signals(interrupted: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C is a key while there is a line to type in, and a signal in between: it means the same."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _own_file(path: Path) -> None:
    """For its owner's eyes only: it holds what was typed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
