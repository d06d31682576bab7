"""A transcript as one HTML file to keep and to send on: no script, no request to anybody. Pure functions."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from clawdforge.core.models.rows import MessageRow, SessionRow
from clawdforge.wire.base import to_iso_seconds
from clawdforge.wire.message import Role

GROUP_CHARS: Final = 1 << 16
"""A piece is made while everybody else waits."""
SLICE_CHARS: Final = 1 << 14

NAMES: Final = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool", Role.SYSTEM: "System"}
HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }}
section {{ border-top: 1px solid #8886; padding: .5rem 0; }}
h2 {{ font-size: 1rem; margin: .5rem 0; }}
pre {{ font: inherit; white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }}
.aside {{ opacity: .7; }}
</style></head><body>
<h1>{title}</h1>
<p class="aside">{about}</p>
"""


def page(session: SessionRow, messages: Sequence[MessageRow]) -> Iterator[bytes]:
    """The file in pieces, each of few characters, however long a message is."""
    model = f" ({session.model})" if session.model else ""
    about = f"{session.agent}{model}, {to_iso_seconds(session.created_at)}"
    yield HEAD.format(title=escape(session.title or "Untitled"), about=escape(about)).encode()
    group: list[str] = []
    room = GROUP_CHARS
    for text in (text for row in messages for text in _section(row)):
        group.append(text)
        room -= len(text)
        if room <= 0:
            yield "".join(group).encode("utf-8", "replace")
            group, room = [], GROUP_CHARS
    yield "".join(group).encode("utf-8", "replace")
    yield b"</body></html>\n"


def _section(row: MessageRow) -> Iterator[str]:
    marks = [word for word, shown in (("archived", row.archived), ("summary", row.is_summary)) if shown]
    who = NAMES.get(Role(row.role), row.role.title()) + (f" ({', '.join(marks)})" if marks else "")
    at = to_iso_seconds(row.ts)
    yield f'<section><h2>{escape(who)} <time class="aside" datetime="{at}">{at}</time></h2>\n'
    if row.thinking:
        yield from _wrap('<pre class="aside">', row.thinking, "</pre>\n")
    for call in row.tool_calls:
        name = str(call.get("title") or call.get("name") or "tool")
        yield from _wrap('<p class="aside">', name, "</p>\n")
    if row.content:
        yield from _wrap("<pre>", row.content, "</pre>\n")
    yield "</section>\n"


def _wrap(before: str, text: str, after: str) -> Iterator[str]:
    """The text is made safe a slice at a time; a long one would keep everybody waiting."""
    yield before
    for start in range(0, len(text), SLICE_CHARS):
        yield escape(text[start : start + SLICE_CHARS])
    yield after
