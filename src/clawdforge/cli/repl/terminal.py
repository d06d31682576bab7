"""A terminal with a line to type in below, and what happens above it, until Ctrl-D."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.patch_stdout import patch_stdout

from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Item, clean
from clawdforge.cli.output.painter import make_painter
from clawdforge.cli.repl.commands import Commands, Leave
from clawdforge.cli.repl.completer import WordCompleter
from clawdforge.cli.repl.conversation import Conversation
from clawdforge.cli.repl.folds import Folds, WholeFileHistory, WholeMemoryHistory
from clawdforge.cli.repl.keys import Keys
from clawdforge.cli.repl.quiet import QuietInput, keep_quiet, leave_on_signals
from clawdforge.cli.repl.resize import keep_place
from clawdforge.cli.repl.shell import run_shell
from clawdforge.cli.repl.style import SHEET, fragments
from clawdforge.cli.target.connect import failure_of
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
        self._painter = make_painter(colour=target.colour)
        self._conversation: Conversation | None = None
        self._prompts: PromptSession[str] | None = None
        self._folds = Folds()

    def show(self, items: list[Item]) -> None:
        if items:
            sys.stdout.write(self._painter.paint(items, self._width()))
            sys.stdout.flush()
        self._redraw()

    def show_reply(self, items: list[Item]) -> None:
        self.show(items)

    def take_event(self, event: Event) -> None:
        """Nothing to do: `show` has shown it."""

    async def run(self, conversation: Conversation, commands: Commands) -> None:
        self._conversation = conversation
        typed = QuietInput(sys.stdin)
        keys = Keys(conversation, self, self._folds, typed)
        completer = WordCompleter(conversation, commands)
        self._prompts = PromptSession(
            self._make_prompt,
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=self._make_toolbar,
            history=self._open_history(),
            completer=completer,
            complete_while_typing=Condition(lambda: completer.expects(get_app().current_buffer.document)),
            key_bindings=keys.bindings(),
            style=SHEET,
            color_depth=None if self._target.colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=False,
            input=typed,
            tempfile_suffix=".md",
            refresh_interval=1.0,  # the seconds that a turn takes
        )
        keep_place(self._prompts.app, os.environ)
        self._prompts.app.min_redraw_interval = REDRAW_SECS
        with keep_quiet(typed.fileno()), leave_on_signals(), patch_stdout(raw=True):
            self._greet(conversation)
            await conversation.open(past=True)  # until there is a line to type in, Ctrl-C ends the program
            with _handle_interrupts(keys.interrupt):
                await self._converse(conversation, commands, keys, self._prompts)
                await keys.finish()
        self._target.note(f"session kept; continue it with `clawdforge -r {conversation.session_id[:8]}`")

    async def _converse(
        self, conversation: Conversation, commands: Commands, keys: Keys, prompts: PromptSession[str]
    ) -> None:
        with contextlib.suppress(EOFError, Leave):
            if self._first:
                self.show(render.prompt(self._first))
                await self._handle(keys, self._run_line(conversation, commands, self._first))
            while True:
                text = self._folds.unfold(await prompts.prompt_async(handle_sigint=False))
                await self._handle(keys, self._run_line(conversation, commands, text))

    def _greet(self, conversation: Conversation) -> None:
        row = conversation.row
        title = f"  {row['title']}" if row.get("title") else ""
        self.show(
            render.note(f"session {conversation.session_id[:8]} · {row['agent']} in {row['cwd']}{title}")
        )

    async def _handle(self, keys: Keys, work: Coroutine[Any, Any, None]) -> None:
        """In a task of its own, which Ctrl-C can end without ending the conversation."""
        busy = asyncio.create_task(work)
        keys.watch(busy)
        await asyncio.wait({busy})
        if not busy.cancelled():
            busy.result()

    async def _run_line(self, conversation: Conversation, commands: Commands, text: str) -> None:
        """A line that was typed: a command of ours, or words for the agent."""
        if not text.strip():
            return
        try:
            if text.startswith("!"):
                await self._run_shell(conversation, text[1:])
            elif not await commands.run(text):
                await conversation.say(text)
        except ForgeError as error:
            self.show(render.note(failure_of(error).message, "bad"))

    async def _run_shell(self, conversation: Conversation, command: str) -> None:
        """A command of the person's own, in the session's folder where that is on this machine."""
        folder = Path(str(conversation.row["cwd"]))
        is_here = await asyncio.to_thread(folder.is_dir)
        code, said = await run_shell(command, folder if is_here else Path())
        self.show([[("", row)] for row in clean(said).rstrip("\n").split("\n")] if said.strip() else [])
        if code:
            self.show(render.note(f"ended with {code}", "bad"))

    def _make_prompt(self) -> StyleAndTextTuples:
        live = (
            self._conversation.view.live_lines(self._width())
            if self._conversation and not get_app().is_done
            else []
        )
        return [*fragments(live), ("class:you", "> ")]

    def _make_toolbar(self) -> StyleAndTextTuples:
        conversation = self._conversation
        if conversation is None:
            return []
        row, view = conversation.row, conversation.view
        parts = [
            str(row["agent"]),
            *([str(row["model"])] if row.get("model") else []),
            conversation.session_id[:8],
        ]
        parts.append(str(row["permission_mode"]).replace("_", " "))
        parts += [view.fill] if view.fill else []
        away = conversation.lost_secs
        if away is not None:
            parts.append(f"Reconnecting ({away} s)…")
        elif view.running is not None:
            parts += view.progress(time.monotonic())
        else:
            parts.append("/help")
        while len(parts) > 1 and len(" · ".join(parts)) >= self._width():
            del parts[0]  # the last says what goes on
        return [("class:bottom-toolbar", " · ".join(parts))]

    def _width(self) -> int:
        """Of the terminal itself: COLUMNS may be left over from whoever started us."""
        prompts = self._prompts
        return prompts.output.get_size().columns if prompts else shutil.get_terminal_size().columns

    def _redraw(self) -> None:
        if self._prompts is not None and self._prompts.app.is_running:
            self._prompts.app.invalidate()

    def _open_history(self) -> History:
        path = self._target.folder / HISTORY_FILE
        with contextlib.suppress(OSError):
            _create_private_file(path)
            return WholeFileHistory(str(path), self._folds)
        return WholeMemoryHistory(self._folds)


@contextlib.contextmanager
def _handle_interrupts(interrupted: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C is a key while there is a line to type in, and a signal in between: it means the same."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _create_private_file(path: Path) -> None:
    """For its owner's eyes only: it holds what was typed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
