"""One open session in the terminal: what it shows and is sent, across lost connections and restarts."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar
from uuid import uuid4

from clawdforge.cli.failures import Failure
from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Item
from clawdforge.cli.output.live_view import View
from clawdforge.cli.repl.attached import find_attached
from clawdforge.cli.tables import size
from clawdforge.cli.target.connect import failure_of
from clawdforge.cli.target.find_session import Row
from clawdforge.cli.target.options import Endpoint, Target
from clawdforge.client import AsyncForge, AsyncSession
from clawdforge.client.errors import ForgeAPIError, ForgeConnectionError, ForgeError, StreamBroken
from clawdforge.wire.admin import FileReply
from clawdforge.wire.event import Event
from clawdforge.wire.turn import Decision

T = TypeVar("T")
PATIENCE_SECS: Final = 2.0
"""How long a lost server may stay away before we look whether it has come back elsewhere."""

RETRY_SECS: Final = 1.0
SHOWN_MESSAGES: Final = 12


class Face(Protocol):
    """Where a conversation is shown."""

    def show(self, items: list[Item]) -> None:
        """Show something that happened in the session."""

    def show_reply(self, items: list[Item]) -> None:
        """Show the reply to a command."""

    def take_event(self, event: Event) -> None:
        """Called with each event, after the lines that it completes were shown."""


class Conversation:
    """`view` holds the current state; `face` shows everything that is finished."""

    def __init__(self, target: Target, endpoint: Endpoint, row: Row, face: Face) -> None:
        self.target = target
        self.endpoint = endpoint
        self.face = face
        self._forge = _make_client(endpoint)
        self._turn_ended = asyncio.Condition()
        self._watching: asyncio.Task[None] | None = None
        self._lost_at = 0.0
        self._is_there = asyncio.Event()
        self._is_there.set()
        self._enter(row)

    def _enter(self, row: Row) -> None:
        self.row = row
        self.view = View()
        self.session: AsyncSession = self._forge.attach(str(row["session_id"]))
        self.cursor = int(row.get("head") or 0)
        self._ended: set[int] = set()

    @property
    def forge(self) -> AsyncForge:
        return self._forge

    @property
    def lost_secs(self) -> int | None:
        """For how long the server has been away; None while it is there."""
        return None if self._is_there.is_set() else int(time.monotonic() - self._lost_at)

    async def hold(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something that may be done once only, as soon as the server is there."""
        is_told = False
        while True:
            await self._is_there.wait()
            try:
                return await work()
            except ForgeConnectionError as error:
                if error.sent:
                    raise
            if not is_told:
                self.face.show_reply(render.note("the server does not answer; held until it is back"))
            is_told = True
            await asyncio.sleep(RETRY_SECS)  # `_watch` has noticed by then

    @property
    def session_id(self) -> str:
        return self.session.session_id

    async def open(self, *, past: bool) -> None:
        """Join a turn that is running and watch from now on; with `past`, show earlier messages first."""
        if past:
            await self._show_past()
        running = self.row.get("running_turn")
        if running is not None:
            async for turn in self.session.turns(after=int(running) - 1):
                if turn.turn_index == running and turn.first_seq is not None:
                    self.cursor = turn.first_seq - 1
                    self.face.show(render.prompt(turn.prompt, most=render.MOST_PROMPT))
        self._watching = asyncio.create_task(self._watch())

    async def _show_past(self) -> None:
        said = [message async for message in self.session.messages() if not message.pending]
        if len(said) > SHOWN_MESSAGES:
            self.face.show(render.note(f"… {len(said) - SHOWN_MESSAGES} earlier messages"))
        for message in said[-SHOWN_MESSAGES:]:
            self.face.show(render.message(message.model_dump()))

    async def switch(self, row: Row) -> None:
        """Continue in another session."""
        await self._stop_watching()
        self._enter(row)
        await self.open(past=True)

    async def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        """Show every event of the session as it happens, for ever."""
        while not self.view.closed:
            try:
                async for event in self.session.follow(after=self.cursor):
                    await self._take(event)
            except (StreamBroken, ForgeConnectionError):
                await self._reconnect()
            except ForgeAPIError as error:
                self.face.show(render.note(failure_of(error).message, "bad"))
                self.view.closed = True

    async def _take(self, event: Event) -> None:
        self.cursor = event.seq
        self.face.show(self.view.take(event))
        self.face.take_event(event)
        if event.type == "turn.ended" and event.turn is not None:
            async with self._turn_ended:
                self._ended.add(event.turn)
                self._turn_ended.notify_all()

    async def _reconnect(self) -> None:
        """Find the server again, wherever it listens now; on a data folder of ours, start it if need be."""
        self.face.show(render.note("lost the server; waiting for it to come back", "warn"))
        self._lost_at = time.monotonic()
        self._is_there.clear()
        counting = asyncio.create_task(self._count_seconds())
        try:
            await self._find_server()
        finally:
            counting.cancel()
        self._is_there.set()
        self.face.show(render.note("the server is back"))

    async def _count_seconds(self) -> None:
        while True:
            self.face.show([])  # what is shown below the line counts
            await asyncio.sleep(1)

    async def _find_server(self) -> None:
        while True:
            try:
                endpoint = await asyncio.to_thread(self.target.reach)
                forge = _make_client(endpoint)
                await forge.readyz()
            except (Failure, ForgeError):
                await asyncio.sleep(RETRY_SECS)
                continue
            old, self._forge, self.endpoint = self._forge, forge, endpoint
            self.session = forge.attach(self.session_id)
            await old.close()
            return

    async def say(self, prompt: str) -> int:
        """Send a prompt exactly once, whatever happens to the connection; returns the turn's number."""
        files = await self._attach(prompt)
        self.view.sent.append(prompt)
        key = str(uuid4())
        try:
            accepted = await self._repeat_until_answered(
                lambda: self.session.submit(prompt, files=files or None, idempotency_key=key)
            )
        except (ForgeError, asyncio.CancelledError):
            if prompt in self.view.sent:  # otherwise the server has received it
                self.view.sent.remove(prompt)
            raise
        return accepted.turn_index

    async def _attach(self, prompt: str) -> list[str]:
        """Send the files that go along with the prompt; their tokens."""
        tokens: list[str] = []
        if "@" not in prompt:
            return tokens
        for path in await asyncio.to_thread(find_attached, prompt, Path(str(self.row["cwd"]))):
            try:
                sent = await self._repeat_until_answered(partial(self._upload, path))
            except OSError as error:
                raise ForgeError(f"{path} cannot be read: {error.strerror}; nothing was sent") from error
            self.face.show_reply(render.note(f"attached {path.name} ({size(sent.size)})"))
            tokens.append(sent.file_token)
        return tokens

    async def _upload(self, path: Path) -> FileReply:
        return await self._forge.upload(path)

    async def _repeat_until_answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call that may be repeated until a server has answered it."""
        while True:
            forge = self._forge
            try:
                return await call()
            except ForgeConnectionError:
                if forge is self._forge:
                    await asyncio.sleep(RETRY_SECS)  # `_watch` reconnects

    async def wait_for_end(self, turn_index: int) -> None:
        """Wait until this turn is over."""
        async with self._turn_ended:
            await self._turn_ended.wait_for(lambda: turn_index in self._ended or self.view.closed)

    async def decide(self, decision: Decision, permission_id: str | None = None) -> None:
        """Answer a question of the agent; without its id, the oldest that waits."""
        permission_id = permission_id or next(iter(self.view.pending), None)
        if permission_id is not None:
            await self.session.decide(permission_id, decision)

    async def close(self) -> None:
        await self._stop_watching()
        await self._forge.close()


def _make_client(endpoint: Endpoint) -> AsyncForge:
    return AsyncForge(endpoint.url, endpoint.token, reconnect_secs=PATIENCE_SECS)
