"""A session that an editor has open: what happens in it from a cursor on, shown in order, and its prompts.

The editor's own prompts are not shown to it again; what others send to the same session is.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any, Final
from uuid import uuid4

from clawdforge.client import AsyncForge
from clawdforge.client.errors import (
    ForgeAPIError,
    ForgeConnectionError,
    ForgeError,
    StreamBroken,
)
from clawdforge.client.models import Permission, TurnAccepted
from clawdforge.faces.acp import settings, updates
from clawdforge.faces.acp.asking import Asking
from clawdforge.faces.acp.editor import Editor
from clawdforge.faces.acp.endings import answer_of
from clawdforge.faces.acp.failures import to_rpc
from clawdforge.faces.acp.prompts import Attachment, Prompt
from clawdforge.faces.link import PAUSE_SECS, Link
from clawdforge.jsonrpc.rpc import INTERNAL_ERROR, INVALID_REQUEST, Disconnected, RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.event import Event, EventType

END_SECS: Final = 15.0
"""How long a turn that was stopped may take to end before a session is closed all the same."""

PASSING: Final = frozenset({429, 502, 503, 504})
"""What a server says that is asked again a little later."""

MAX_REFUSALS: Final = 600
"""So often in a row, with a pause before each, until whoever waits is told."""

BUSY: Final = "a prompt is running in this session; wait for its answer, or cancel it"
CLOSED: Final = "the session is no longer read; load it again"


class LiveSession:
    """`cursor` is the last event that the editor was shown or need not be shown; None until it is known.

    `remark` is shown once, before the next prompt is sent: by then the editor knows the session, even a fork.
    """

    def __init__(self, link: Link, editor: Editor, session_id: str) -> None:
        self.session_id = session_id
        self.cursor: int | None = None
        self.remark = ""
        self._link = link
        self._editor = editor
        self._asking = Asking(link, editor, session_id)
        self._reader: asyncio.Task[None] | None = None
        self._submitting = asyncio.Lock()
        self._ends: dict[int, asyncio.Future[Event]] = {}
        self._idle = asyncio.Event()  # no prompt of the editor's is being sent or waited for
        self._idle.set()
        self._is_cancelled = False
        self._is_closed = False
        self._stopping: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return not self._idle.is_set()

    @property
    def is_read(self) -> bool:
        return self._reader is not None and not self._reader.done()

    def follow(self) -> None:
        """Show what happens from the cursor on, unless that is being done, or the editor has done with it."""
        if not self.is_read and not self._is_closed:
            self._reader = asyncio.create_task(self._read(), name=f"session {self.session_id}")
            self._reader.add_done_callback(self._end_reading)

    def ask_again(self, waiting: list[Permission]) -> None:
        """What the agent asked before the editor came."""
        self._asking.begin_pending(waiting)

    async def prompt(self, read: Callable[[], Prompt]) -> Json:
        """Send a prompt exactly once, whatever becomes of the server, and wait for its end."""
        if self.is_busy:
            raise RpcError(INVALID_REQUEST, BUSY)
        self._idle.clear()
        self._is_cancelled = False
        turn: int | None = None
        try:
            prompt = read()
            if self.remark:
                remark, self.remark = self.remark, ""
                await self._show(updates.of_thought(remark))
            accepted, end = await self._submit(prompt)
            prompt.forget()
            turn = accepted.turn_index
            if self._is_closed:  # nobody reads its end any more
                await self._take_back(turn)
                raise RpcError(INTERNAL_ERROR, CLOSED)
            if self._is_cancelled:
                self._stop(turn)
            return answer_of(await end)
        finally:
            self._idle.set()
            if turn is not None:
                self._ends.pop(turn, None)
            if self._stopping is not None:
                self._stopping.cancel()
                self._stopping = None

    async def _submit(self, prompt: Prompt) -> tuple[TurnAccepted, "asyncio.Future[Event]"]:
        key = str(uuid4())
        if self.cursor is None:
            state = await self._link.repeat(lambda forge: forge.get_session(self.session_id))
            self.cursor = state.head
        tokens = [await self._upload(one) for one in prompt.files]
        async with self._submitting:  # the reader waits for it, and knows then whose turn it is
            accepted = await self._link.repeat(
                lambda forge: forge.attach(self.session_id).submit(
                    prompt.text, tokens or None, idempotency_key=key
                )
            )
            end: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
            self._ends[accepted.turn_index] = end
        self.follow()
        return accepted, end

    async def _upload(self, file: Attachment) -> str:
        sent = await self._link.repeat(lambda forge: forge.upload(BytesIO(file.data), name=file.name))
        return sent.file_token

    def cancel(self) -> None:
        """Stop the editor's own turn, if one runs or waits; after its end this does nothing."""
        if self.is_busy and not self._is_cancelled:
            self._is_cancelled = True
            for turn in self._ends:
                self._stop(turn)

    def _stop(self, turn: int) -> None:
        self._stopping = asyncio.create_task(self._take_back(turn), name=f"cancel {self.session_id}")

    async def _take_back(self, turn: int) -> None:
        """This turn and no other, however often it is asked: another may run by the time a reply is lost."""
        with suppress(ForgeError):  # its end tells what is wrong
            await self._link.repeat(lambda forge: forge.attach(self.session_id).cancel(turn=turn))

    async def end(self) -> None:
        """Stop the editor's own turn, also one that is still being sent, and reading, for good."""
        self.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECS):
                await self._idle.wait()
        self._is_closed = True
        await self.pause()

    async def pause(self) -> None:
        """Stop reading; the cursor stays, and so does whatever runs."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        await self._asking.close()

    async def _read(self) -> None:
        refusals = 0
        while True:
            forge = await self._link.open()
            try:
                async for event in forge.attach(self.session_id).follow(after=self.cursor or 0):
                    await self._take(event, forge)
                    self.cursor = event.seq
                    refusals = 0
            except (StreamBroken, ForgeConnectionError):
                await self._link.find_again(forge)
            except ForgeAPIError as error:
                refusals += 1
                if error.status_code not in PASSING or refusals > MAX_REFUSALS:
                    raise
                await asyncio.sleep(PAUSE_SECS)

    def _end_reading(self, reader: "asyncio.Task[None]") -> None:
        """Nobody may wait for the end of a turn that is no longer read."""
        error = None if reader.cancelled() else reader.exception()
        if error is None or isinstance(error, Disconnected):
            found: Exception = RpcError(INTERNAL_ERROR, CLOSED)
        else:
            found = to_rpc(error) if isinstance(error, ForgeError) else RpcError(INTERNAL_ERROR, str(error))
        for end in self._ends.values():
            if not end.done():
                end.set_exception(found)

    async def _take(self, event: Event, forge: AsyncForge) -> None:
        fields: Json = event.model_extra or {}
        if event.type == EventType.TURN_QUEUED:
            async with self._submitting:
                return
        elif event.type == EventType.TURN_STARTED:
            await self._show_prompt_of_others(event.turn, forge)
        elif event.type == EventType.PERMISSION_REQUESTED:
            self._asking.begin(
                str(fields.get("permission_id")),
                fields.get("request"),
                fields.get("options"),
                str(fields.get("tool")),
            )
        elif event.type == EventType.PERMISSION_DECIDED:
            await self._asking.take_decision(str(fields.get("permission_id")), fields.get("decision"))
        elif event.type == EventType.TURN_ENDED:
            await self._asking.close()
            end = self._ends.get(event.turn or 0)
            if end is not None and not end.done():
                end.set_result(event)
        elif event.type == EventType.SESSION_CHANGED:
            await self._show_change(fields.get("changes"), forge)
        else:
            update = updates.of_event(event)
            if update is not None:
                await self._show(update)

    async def _show_prompt_of_others(self, turn: int | None, forge: AsyncForge) -> None:
        if turn is None or turn in self._ends:
            return
        async for found in forge.attach(self.session_id).turns(after=turn - 1):
            if found.turn_index == turn:
                for update in updates.of_prompt(found.prompt, f"t{turn}"):
                    await self._show(update)
            return

    async def _show_change(self, changes: Any, forge: AsyncForge) -> None:
        changed = set(changes) if isinstance(changes, dict) else set()
        if changed.isdisjoint({"permission_mode", "plan_mode", "agent", "model", "title"}):
            return
        state = await forge.get_session(self.session_id)
        if "title" in changed:
            await self._show({"sessionUpdate": "session_info_update", "title": state.title})
        if changed & {"permission_mode", "plan_mode"}:
            mode = settings.mode_of(state)
            await self._show({"sessionUpdate": "current_mode_update", "currentModeId": mode})
        if changed & {"agent", "model"}:
            options = settings.options_of(state, await forge.agents())
            await self._show({"sessionUpdate": "config_option_update", "configOptions": options})

    async def _show(self, update: Json) -> None:
        await self._editor.show(self.session_id, update)
