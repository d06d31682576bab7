"""Permissions: the editor's user is asked, and so is everybody else; the first answer counts."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from clawdforge.client import AsyncForge
from clawdforge.client.errors import AlreadyDecided, ForgeError
from clawdforge.client.models import Decision, Permission
from clawdforge.faces.acp import updates
from clawdforge.faces.acp.editor import Editor
from clawdforge.faces.link import Link
from clawdforge.jsonrpc.rpc import Disconnected, RpcError
from clawdforge.wire.base import Json

OWN_OPTIONS: Final[tuple[Json, ...]] = (
    {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)
"""For an agent that asks without saying what can be answered."""


class Asking:
    """The open questions of one session. A question that its editor leaves open stays open for others."""

    def __init__(self, link: Link, editor: Editor, session_id: str) -> None:
        self._link = link
        self._editor = editor
        self._session_id = session_id
        self._open: dict[str, asyncio.Task[None]] = {}
        self._answered: set[str] = set()

    def begin(self, permission_id: str, request: Any, options: Any, tool: str) -> None:
        """Ask the editor, beside everything else."""
        if permission_id in self._open:
            return
        offered = [option for option in options or () if isinstance(option, dict)]
        call = request.get("toolCall") if isinstance(request, dict) else None
        shown: Json = dict(call) if isinstance(call, dict) else {}
        shown.setdefault("title", tool)
        if not isinstance(shown.get("toolCallId"), str):
            shown["toolCallId"] = permission_id
        task = asyncio.create_task(
            self._ask(permission_id, updates.without_terminals(shown), offered), name=f"ask {permission_id}"
        )
        self._open[permission_id] = task

    def begin_pending(self, waiting: Sequence[Permission]) -> None:
        for one in waiting:
            self.begin(one.permission_id, one.request, one.options, one.tool)

    async def take_decision(self, permission_id: str, decision: Any) -> None:
        """Somebody has decided. If it was not this editor, its question is withdrawn and its user told."""
        task = self._open.pop(permission_id, None)
        if task is None or task.done() or permission_id in self._answered:
            return
        await _end(task)
        await self._tell(decision)

    async def close(self) -> None:
        """Ask no longer; the questions stay open for others."""
        for task in self._open.values():
            await _end(task)
        self._open.clear()

    async def _ask(self, permission_id: str, call: Json, offered: list[Json]) -> None:
        with suppress(Disconnected, RpcError):  # an editor that cannot ask leaves it to others
            chosen = await self._editor.ask(self._session_id, call, offered or OWN_OPTIONS)
            if chosen is None:
                return
            self._answered.add(permission_id)
            try:
                await self._decide(permission_id, chosen, offered)
            finally:
                self._answered.discard(permission_id)

    async def _decide(self, permission_id: str, chosen: str, offered: list[Json]) -> None:
        decision = _read_decision(chosen, offered or OWN_OPTIONS)
        if decision is None:
            await self._show("That answer was not among the options, so the question is still open.")
            return
        option_id = chosen if offered else None

        async def decide(forge: AsyncForge) -> None:
            session = forge.attach(self._session_id)
            await session.decide(permission_id, decision, option_id=option_id)

        try:
            await self._link.repeat(decide)
        except AlreadyDecided:
            await self._tell(None)
        except ForgeError as error:
            await self._show(f"Your answer did not count: {error}")

    async def _tell(self, decision: Any) -> None:
        known = f" ({decision})" if isinstance(decision, str) else ""
        await self._show(f"Somebody else has decided this already{known}.")

    async def _show(self, text: str) -> None:
        await self._editor.show(self._session_id, updates.of_thought(text))


def _read_decision(chosen: str, options: Sequence[Json]) -> Decision | None:
    """What the choice means, by the kind of its option; one of an unknown kind allows nothing."""
    for option in options:
        if option.get("optionId") == chosen:
            kind = str(option.get("kind"))
            if kind == "allow_always":
                return Decision.ALLOW_ALWAYS
            return Decision.ALLOW_ONCE if kind == "allow_once" else Decision.REJECT
    return None


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
