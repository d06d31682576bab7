"""Slash commands of the conversation: what each says and does."""

import asyncio
import difflib
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from clawdforge.cli.failures import Failure
from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Item
from clawdforge.cli.repl.conversation import Conversation
from clawdforge.cli.tables import kept_until, session_lines
from clawdforge.cli.target import find_session
from clawdforge.wire.session import PermissionMode

KEYS: Final = (
    "Enter sends · Esc Enter or \\ at the end: a new line · Ctrl-C stops the turn · "
    "Esc Esc takes the last turn back · !… runs a shell command · Ctrl-X Ctrl-E opens $EDITOR · "
    "Ctrl-D leaves and keeps the session"
)

NEED_NO_SERVER: Final = frozenset({"exit", "help"})


class Leave(Exception):
    """Raised when the person leaves the conversation."""


class Commands:
    """One method for each command; its docstring is its help."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def help(self) -> dict[str, str]:
        """Name → what it does."""
        found = inspect.getmembers(type(self), inspect.iscoroutinefunction)
        return {
            f"/{name.removeprefix('do_')}": inspect.cleandoc(method.__doc__ or "").split("\n")[0]
            for name, method in found
            if name.startswith("do_")
        }

    async def run(self, line: str) -> bool:
        """Run one of our commands; False for any other line, which is meant for the agent."""
        if not line.startswith("/"):
            return False
        name, _, rest = line[1:].partition(" ")
        name = {"quit": "exit", "cost": "usage", "rewind": "undo"}.get(name, name)
        handler: Callable[[str], Awaitable[None]] | None = getattr(self, f"do_{name}", None)
        if handler is None:
            return self._suggest_spelling(name)
        try:
            if name in NEED_NO_SERVER:
                await handler(rest.strip())
            else:
                await self._conversation.hold(partial(handler, rest.strip()))
        except Failure as error:
            self._say(error.message, "bad")
        return True

    def _suggest_spelling(self, name: str) -> bool:
        known = [word.removeprefix("/") for word in self.help()]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        if not near or name in self._conversation.view.commands:
            return False
        self._say(f"there is no /{name}; did you mean /{near[0]}? /help shows all", "warn")
        return True

    async def do_help(self, _rest: str) -> None:
        """Show the commands and the keys."""
        names = self.help()
        wide = max(map(len, names))
        self._show([[("bold", name.ljust(wide)), ("dim", f"  {about}")] for name, about in names.items()])
        self._say(KEYS)

    async def do_exit(self, _rest: str) -> None:
        """Leave. The session is kept."""
        raise Leave

    async def do_model(self, rest: str) -> None:
        """Show the model, or switch to another one: /model NAME."""
        if rest:
            await self._change(model=rest, fresh_context=True)
        else:
            self._say(f"model: {self._conversation.row.get('model') or 'the default of the agent'}")

    async def do_agent(self, rest: str) -> None:
        """Show the agents, or switch to another one: /agent NAME."""
        if rest:
            await self._change(agent=rest)
            return
        now = self._conversation.row["agent"]
        for agent in await self._conversation.forge.agents():
            here = "" if agent.installed else "  (not installed)"
            self._say(f"{'*' if agent.name == now else ' '} {agent.name}  {agent.title}{here}")

    async def do_permissions(self, rest: str) -> None:
        """Show how the agent's requests are decided, or change that: /permissions MODE."""
        modes = [mode.value for mode in PermissionMode]
        if rest in modes:
            await self._change(permission_mode=rest)
        else:
            self._say(
                f"permissions: {self._conversation.row['permission_mode']}; choose from {', '.join(modes)}"
            )

    async def do_clear(self, _rest: str) -> None:
        """Give the agent an empty memory. The old messages are kept."""
        await self._conversation.session.clear()
        await self._refresh()

    async def do_undo(self, rest: str) -> None:
        """Take back the last turn, or the last N: /undo N."""
        cut = await self._conversation.session.undo(int(rest) if rest.isdigit() else None)
        self._say(f"your prompt was: {cut.last_user_text}")
        await self._refresh()

    async def do_redo(self, _rest: str) -> None:
        """Bring back what was undone."""
        await self._conversation.session.redo()
        await self._refresh()

    async def do_retry(self, rest: str) -> None:
        """Send the last prompt again, or another one in its place: /retry PROMPT."""
        await self._conversation.session.retry(run=True, prompt=rest or None)

    async def do_compact(self, _rest: str) -> None:
        """Replace the conversation so far by a summary."""
        await self._conversation.session.compact()
        await self._refresh()

    async def do_fork(self, rest: str) -> None:
        """Continue in a copy of this session: /fork TITLE."""
        fork = await self._conversation.session.fork(title=rest or None)
        self._say(
            f"continuing in {fork.session_id[:8]}; session {self._conversation.session_id[:8]} is unchanged"
        )
        await self._conversation.switch(await fork.state())

    async def do_sessions(self, rest: str) -> None:
        """Show the sessions of this project, or switch to one: /sessions ID."""
        endpoint = self._conversation.endpoint
        if rest:
            row = find_session.find_open(endpoint, rest)
            self._say(f"session {row['session_id'][:8]}  {row['title']}")
            await self._conversation.switch(row)
            return
        for line in session_lines(find_session.list_recent(endpoint), colour=False):
            self._say(line)

    async def do_rename(self, rest: str) -> None:
        """Give the session a title: /rename TITLE."""
        if rest:
            self._conversation.row = await self._conversation.session.rename(rest)

    async def do_usage(self, _rest: str) -> None:
        """Show tokens and cost of this session."""
        used = await self._conversation.session.usage()
        self._say(f"reported by the agent: {render.usage(used.reported.model_dump())}, {used.turns} turns")
        self._say(f"counted by us: {render.usage(used.estimated.model_dump())}")

    async def do_status(self, _rest: str) -> None:
        """Show the session and the server."""
        await self._refresh()
        row, health = self._conversation.row, await self._conversation.forge.healthz()
        for name in ("session_id", "title", "agent", "model", "cwd", "permission_mode", "turn_count"):
            self._say(f"{name.ljust(16)}{row.get(name) if row.get(name) is not None else '-'}")
        self._say(f"{'kept'.ljust(16)}{kept_until(row)}")
        self._say(f"{'server'.ljust(16)}{self._conversation.endpoint.url}, version {health.version}")

    async def do_export(self, rest: str) -> None:
        """Write the transcript to a file: /export FILE (.md or .json)."""
        path = Path(rest or f"session-{self._conversation.session_id[:8]}.md")
        if path.suffix == ".json":
            text = (await self._conversation.session.export()).model_dump_json(indent=2)
        else:
            text = await self._conversation.session.export_markdown()
        try:
            await asyncio.to_thread(path.write_text, text, encoding="utf-8")
        except OSError as error:
            raise Failure(f"cannot write {path}: {error.strerror}") from None
        self._say(f"written to {path}")

    async def _change(self, **changes: Any) -> None:
        self._conversation.row = await self._conversation.session.patch(**changes)

    async def _refresh(self) -> None:
        self._conversation.row = await self._conversation.session.state()

    def _say(self, text: str, style: Any = "dim") -> None:
        self._show(render.note(text, style))

    def _show(self, items: list[Item]) -> None:
        self._conversation.face.show_reply(items)
