"""Keys of the line: sending, new lines, stopping, leaving, taking back, and answers to the agent."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.search import abort_search
from prompt_toolkit.keys import Keys as Key

from clawdforge.cli.output import render
from clawdforge.cli.output.menu import CHOICES
from clawdforge.cli.repl.conversation import Conversation, Face
from clawdforge.cli.repl.folds import Folds
from clawdforge.cli.repl.quiet import QuietInput
from clawdforge.cli.target.connect import failure_of
from clawdforge.client.errors import ForgeError
from clawdforge.wire.turn import Decision

FINISH_SECS: Final = 15.0
HAND_OVER_SECS: Final = 1.0


class Keys:
    """What each key does. Work that a key starts goes on after the line is sent with Enter."""

    def __init__(self, conversation: Conversation, face: Face, folds: Folds, typed: QuietInput) -> None:
        self._typed = typed
        self._conversation = conversation
        self._folds = folds
        self._face = face
        self._begun: set[asyncio.Task[None]] = set()
        self._busy: asyncio.Task[None] | None = None
        self._sent = self._late = False

    def bindings(self) -> KeyBindings:
        keys = KeyBindings()
        empty = Condition(lambda: not get_app().current_buffer.text) & ~is_searching
        asked = Condition(lambda: self._conversation.view.menu is not None)
        chosen = Condition(lambda: self._find_decision() is not None)
        keys.add("enter", filter=~is_searching)(self._send)
        keys.add("escape", "enter", filter=~is_searching)(self._new_line)
        keys.add("c-c", filter=~is_searching)(self._stop)
        keys.add("c-c", filter=is_searching)(abort_search)
        keys.add("c-d", filter=empty)(self._leave)
        keys.add("escape", "escape", filter=empty)(self._rewind)
        for key, step in (("up", -1), ("down", 1)):
            keys.add(key, filter=empty & asked)(partial(self._move, step))
        for number in range(1, len(CHOICES) + 1):
            keys.add(str(number), filter=empty & asked)(partial(self._choose, number))
        keys.add("enter", filter=empty & chosen)(self._confirm)
        keys.add("c-o")(self._show_whole)
        keys.add("c-x", "c-e", filter=~is_searching)(self._edit)
        keys.add(Key.BracketedPaste, filter=~is_searching)(self._paste)
        return keys

    def _send(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text.endswith("\\") and buffer.cursor_position == len(buffer.text):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            self._sent = True
            buffer.validate_and_handle()

    def _paste(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(self._folds.fold(event.data))

    def _new_line(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def _stop(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text and not self._is_working:
            event.current_buffer.reset()
        else:
            self.interrupt()

    @property
    def _is_working(self) -> bool:
        view = self._conversation.view
        return view.running is not None or bool(view.queued or view.sent)

    def watch(self, busy: "asyncio.Task[None]") -> None:
        """Remember the task that handles the sent line, so that Ctrl-C can stop it."""
        self._busy, self._sent = busy, False
        if self._late:
            self._late = False
            self.interrupt()

    def interrupt(self) -> None:
        """Stop the turn, also when its prompt is still being handed over; or a command that takes long."""
        if self._sent:
            self._late = True
        elif self._busy is not None and not self._busy.done():
            self._run_in_background(self._stop_soon(self._busy))
        elif self._is_working:
            self._run_in_background(self._cancel())
        else:
            self._face.show(render.note("nothing is running; Ctrl-D leaves and keeps the session"))

    async def _stop_soon(self, busy: "asyncio.Task[None]") -> None:
        await asyncio.wait({busy}, timeout=HAND_OVER_SECS)
        if not busy.cancel():
            await self._cancel()
            return
        await asyncio.wait({busy})
        if self._is_working:  # the events were faster than the answer to the prompt
            await self._cancel()
        else:
            self._face.show(
                render.note("no longer waiting for the server; it may still have received your line")
            )

    async def _cancel(self) -> None:
        if not (await self._conversation.session.cancel()).cancelled:
            self._face.show(render.note("nothing was left to stop"))

    def _leave(self, event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError())

    def _rewind(self, event: KeyPressEvent) -> None:
        if self._conversation.view.running is not None:
            self._face.show(render.note("a turn is running; stop it with Ctrl-C first"))
        else:
            self._run_in_background(self._undo(event))

    async def _undo(self, event: KeyPressEvent) -> None:
        """Undo the last turn and put its prompt into the line."""
        cut = await self._conversation.session.undo()
        event.current_buffer.text = cut.last_user_text
        event.current_buffer.cursor_position = len(cut.last_user_text)

    def _move(self, step: int, _event: KeyPressEvent) -> None:
        if self._conversation.view.menu is not None:
            self._conversation.view.menu.move(step)

    def _choose(self, number: int, _event: KeyPressEvent) -> None:
        if self._conversation.view.menu is not None:
            self._conversation.view.menu.choose(number)

    def _find_decision(self) -> Decision | None:
        menu = self._conversation.view.menu
        return None if menu is None else menu.decision

    def _confirm(self, _event: KeyPressEvent) -> None:
        menu = self._conversation.view.menu
        if menu is not None and menu.decision is not None:
            # By its id: somebody else may decide it at this moment, and another question take its place.
            asked = str(menu.request.get("permission_id"))
            self._run_in_background(self._conversation.decide(menu.decision, asked))

    def _show_whole(self, _event: KeyPressEvent) -> None:
        """What is asked for, or else what the last tool printed."""
        view = self._conversation.view
        if view.menu is not None:
            self._face.show(render.permission_request(view.menu.request, whole=True))
        elif view.last_tool is not None:
            self._face.show(render.tool(view.last_tool, whole=True))

    async def _edit(self, event: KeyPressEvent) -> None:
        """In `$EDITOR`; what was written there is sent."""
        with self._typed.hand_over():
            await event.current_buffer.open_in_editor(validate_and_handle=True)

    async def finish(self) -> None:
        """Wait a little for work in progress: whoever stops a turn and leaves wants it stopped."""
        if self._begun:
            await asyncio.wait(self._begun, timeout=FINISH_SECS)

    def _run_in_background(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(self._run_showing_errors(work))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _run_showing_errors(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except ForgeError as error:
            self._face.show(render.note(failure_of(error).message, "bad"))
