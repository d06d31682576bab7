"""The live view of a session: takes events, returns finished lines, and knows the current state."""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Item, Line, clean, wrap, wrap_line
from clawdforge.cli.output.markdown import MarkdownStream
from clawdforge.cli.output.menu import Menu
from clawdforge.cli.tables import one_line, tokens
from clawdforge.wire.event import Event
from clawdforge.wire.event_forms import update_of
from clawdforge.wire.message import CALL_ID

TAIL_LINES: Final = 6
MOST_TAIL: Final = 4000
"""So much of a paragraph is broken into rows, from its start, so that they stay as they are."""

SPINNER: Final = "◐◓◑◒"
OVER: Final = frozenset({"completed", "failed", "cancelled"})
REMARKS: Final = {
    "session.closed": "this session has been ended",
    "session.reopened": "this session is open again",
    "history.cleared": "cleared: the agent's memory is empty; the old messages are kept",
    "history.compacted": "compacted: a summary replaced the conversation so far",
    "output.truncated": "the agent's output exceeded the limit; the rest was dropped",
}


@dataclass(slots=True)
class View:
    """`sent` holds the prompts that were typed here and are on the screen already; `since` is when we saw
    the running turn begin, `said_bytes` what its agent has said and thought since then."""

    running: int | None = None
    since: float = 0.0
    said_bytes: int = 0
    queued: set[int | None] = field(default_factory=set)
    pending: "OrderedDict[str, Menu]" = field(default_factory=OrderedDict)
    sent: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    fill: str = ""
    closed: bool = False
    last_tool: dict[str, Any] | None = None
    _text: MarkdownStream = field(default_factory=MarkdownStream)
    _thought: str = ""
    _tools: "OrderedDict[str, dict[str, Any]]" = field(default_factory=OrderedDict)
    _plan: list[Any] = field(default_factory=list)

    def take(self, event: Event) -> list[Item]:
        """The lines that this event finishes."""
        fields = event.model_dump()
        if event.type in ("text", "thinking"):
            self.said_bytes += len(event.text.encode("utf-8", "replace"))
        if event.type == "text":
            return [*self._end_thought(), *self._text.feed(clean(event.text))]
        if event.type == "thinking":
            self._thought += event.text
            return self._text.end()
        handler = getattr(self, "_on_" + event.type.replace(".", "_"), None)
        if handler is not None:
            found: list[Item] = handler(event, fields)
            return found
        remark = REMARKS.get(event.type)
        return [*self._end_words(), *render.note(remark)] if remark else []

    def live_lines(self, width: int) -> list[Line]:
        """What is not finished: the end of the answer, the tools at work, the question that waits."""
        lines: list[Line] = []
        room = min(render.WIDE, max(width - 3, 1))
        if self._thought:
            lines.append([("dim", f"∴ {one_line(clean(self._thought)[-room:], room)}")])
        for update in list(self._tools.values())[-TAIL_LINES:]:
            name = one_line(clean(str(update.get("title") or "tool")), room)
            lines.append([("warn", "… "), ("tool", name)])
        tail = self._text.tail(TAIL_LINES)
        rows = [piece for row in tail.split("\n") for piece in wrap(row[-MOST_TAIL:], width)]
        lines += [[("", row)] for row in rows[-TAIL_LINES:]] if tail else []
        waiting = len(self.queued - {self.running})
        if waiting and self.running is not None:
            lines.append([("dim", f"{waiting} queued")])
        if self.menu is not None:
            lines += self.menu.lines()
        return [row for line in lines for row in wrap_line(line, width)]

    def progress(self, now: float) -> list[str]:
        """Of the running turn: the tokens so far, estimated from the text, and the seconds."""
        secs = max(0, int(now - self.since))
        said = [f"~{tokens((self.said_bytes + 3) // 4)} tokens"] if self.said_bytes else []
        return [*said, f"{SPINNER[secs % len(SPINNER)]} working {secs} s; Ctrl-C stops it"]

    @property
    def menu(self) -> Menu | None:
        """That of the question that was asked first."""
        return next(iter(self.pending.values()), None)

    def _on_turn_queued(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        self.queued.add(event.turn)
        text = str(fields.get("prompt") or "")
        if text in self.sent:
            self.sent.remove(text)
            return []
        remark = "again" if fields.get("retry_of") else "from another terminal or program"
        return [*self._end_words(), *render.prompt(text, remark, most=render.MOST_PROMPT)]

    def _on_turn_started(self, event: Event, _fields: dict[str, Any]) -> list[Item]:
        self.running = event.turn
        self.since = time.monotonic()
        self.said_bytes = 0
        self.queued.discard(event.turn)
        return []

    def _on_turn_ended(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        lines = [*self._end_words(), *self._drop_tools(), *render.plan(self._plan), *render.turn_end(fields)]
        self.queued.discard(event.turn)
        if event.turn == self.running:
            self.running = None
        self._plan = []
        self.pending.clear()
        return lines

    def _on_tool_call(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        return self._update_tool(update_of(event.type, fields))

    def _on_tool_update(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        return self._update_tool(update_of(event.type, fields))

    def _on_plan(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        entries = update_of(event.type, fields).get("entries")
        self._plan = entries if isinstance(entries, list) else []
        return []

    def _on_commands(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        found = update_of(event.type, fields).get("availableCommands")
        names = (
            [item.get("name") for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        )
        self.commands = [clean(name) for name in names if isinstance(name, str)]
        return []

    def _on_usage(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        update = update_of(event.type, fields)
        used, size = update.get("used"), update.get("size")
        if isinstance(used, int) and isinstance(size, int) and size > 0:
            self.fill = f"{100 * used // size} % of the context"
        return []

    def _on_notice(self, event: Event, fields: dict[str, Any]) -> list[Item]:
        update = update_of(event.type, fields)
        words = update.get("message") or update.get("text") or update.get("content") or ""
        words = words.get("text", "") if isinstance(words, dict) else words
        return [*self._end_words(), *render.note(f"! {one_line(clean(str(words)), 4 * render.WIDE)}", "warn")]

    def _on_permission_requested(self, _event: Event, fields: dict[str, Any]) -> list[Item]:
        self.pending[str(fields.get("permission_id"))] = Menu(fields)
        return [*self._end_words(), *render.permission_request(fields)]

    def _on_permission_decided(self, _event: Event, fields: dict[str, Any]) -> list[Item]:
        waited = self.pending.pop(str(fields.get("permission_id")), None)
        return render.permission_decision(fields) if waited else []

    def _on_session_changed(self, _event: Event, fields: dict[str, Any]) -> list[Item]:
        changes = fields.get("changes")
        if not isinstance(changes, dict):
            return []
        words = ", ".join(f"{name} {value}" for name, value in changes.items())
        return [*self._end_words(), *render.note(f"changed: {one_line(clean(words), 4 * render.WIDE)}")]

    def _on_history_cut(self, _event: Event, fields: dict[str, Any]) -> list[Item]:
        turns = fields.get("turns")
        many = f"{len(turns)} turns" if isinstance(turns, list) and len(turns) != 1 else "one turn"
        return [*self._end_words(), *render.note(f"undone: {many}")]

    def _on_history_restored(self, _event: Event, _fields: dict[str, Any]) -> list[Item]:
        return [*self._end_words(), *render.note("brought back what was undone")]

    def _on_session_closed(self, _event: Event, _fields: dict[str, Any]) -> list[Item]:
        self.closed = True
        return [*self._end_words(), *render.note(REMARKS["session.closed"])]

    def _on_context_started(self, _event: Event, fields: dict[str, Any]) -> list[Item]:
        if fields.get("how") != "transcript":
            return []
        return render.note("agent restarted; conversation restored")

    def _update_tool(self, update: dict[str, Any]) -> list[Item]:
        key = str(update.get(CALL_ID) or "")
        known = self._tools.setdefault(key, {})
        known.update({name: value for name, value in update.items() if value is not None})
        lines = self._end_words()
        if str(known.get("status")) in OVER:
            self.last_tool = self._tools.pop(key)
            return [*lines, *render.tool(self.last_tool)]
        return lines

    def _drop_tools(self) -> list[Item]:
        lines = [
            line for update in self._tools.values() for line in render.tool({**update, "status": "cancelled"})
        ]
        self._tools.clear()
        return lines

    def _end_thought(self) -> list[Item]:
        text, self._thought = self._thought, ""
        return render.thought(text)

    def _end_words(self) -> list[Item]:
        """Finish the open thought and text, because something else follows."""
        return [*self._end_thought(), *self._text.end()]
