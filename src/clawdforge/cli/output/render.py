"""Events to lines: pure functions, one for each thing that is shown."""

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from clawdforge.cli.output.lines import Block, Item, Line, clean, diff_line
from clawdforge.cli.tables import money, one_line, tokens

WIDE: Final = 100
MOST_DIFF: Final = 40
MOST_OUTPUT: Final = 3
MOST_PROMPT: Final = 12
MARKS: Final = {
    "completed": "✓",
    "failed": "✗",
    "in_progress": "…",
    "pending": "…",
    "cancelled": "-",
}
DECISIONS: Final = {
    "allow_once": "allowed once",
    "allow_always": "allowed from now on",
    "reject": "refused",
}


def prompt(text: str, remark: str = "", *, most: int | None = None) -> list[Item]:
    """What somebody asked, and a remark on it; one of more lines than `most` is cut."""
    rows = clean(text).split("\n")
    most = None if most is None or len(rows) <= most + 1 else most  # a note takes a line as well
    shown: list[Item] = [
        [("you", "  " if number else "> "), ("bold", row)] for number, row in enumerate(rows[:most])
    ]
    if most is not None:
        shown.append([("dim", f"  … {len(rows) - most} more lines")])
    if remark:
        shown.append([("dim", f"  {remark}")])
    return shown


def thought(text: str) -> list[Item]:
    """What the agent thought, folded to one line."""
    return [[("dim", f"∴ {one_line(clean(text), WIDE)}")]] if text.strip() else []


def tool(update: Mapping[str, Any], *, whole: bool = False) -> list[Item]:
    """A tool call that is over: one line with its status, then its diff or the beginning of its output."""
    status = one_line(clean(str(update.get("status") or "completed")), WIDE)
    mark, name = MARKS.get(status, "·"), one_line(clean(str(update.get("title") or "tool")), WIDE)
    head: Line = [("bad" if status == "failed" else "good", f"{mark} "), ("tool", name)]
    if status != "completed":
        head.append(("dim", f"  {status}"))
    lines: list[Item] = [head]
    for content in _dicts(update.get("content")):
        lines += _content(content, whole=whole)
    return lines


def _content(content: Mapping[str, Any], *, whole: bool = False) -> list[Item]:
    if content.get("type") == "diff":
        most = None if whole else MOST_DIFF
        return diff(str(content.get("path") or ""), content.get("oldText"), content.get("newText"), most)
    inner = content.get("content")
    text = clean(str(inner.get("text") or "")) if isinstance(inner, dict) else ""
    # Some agents put the output of a command between fences, which say nothing.
    rows = [row for row in text.split("\n") if row.strip() and not row.lstrip().startswith("```")]
    if whole:
        return [[("dim", f"    {row}")] for row in rows]
    shown = rows if len(rows) <= MOST_OUTPUT + 1 else rows[:MOST_OUTPUT]  # a note takes a line as well
    lines: list[Item] = [
        [("dim", f"  {' ' if number else '└'} {one_line(row, WIDE)}")] for number, row in enumerate(shown)
    ]
    if len(rows) > len(shown):
        lines.append([("dim", f"    … {len(rows) - len(shown)} more lines; Ctrl-O shows all")])
    return lines


def diff(path: str, old: object, new: object, most: int | None = MOST_DIFF) -> list[Item]:
    """A change to a file, in colours; one of more lines than `most` is cut."""
    before = clean(old).splitlines() if isinstance(old, str) else []
    after = clean(new).splitlines() if isinstance(new, str) else []
    rows = list(difflib.unified_diff(before, after, n=2, lineterm=""))[2:]
    added = sum(row.startswith("+") for row in rows)
    removed = sum(row.startswith("-") for row in rows)
    head: Line = [
        ("dim", "  └ "),
        ("", one_line(clean(path), WIDE)),
        ("added", f"  +{added}"),
        ("removed", f" -{removed}"),
    ]
    shown: list[Item] = [[("", "    "), *diff_line(row)] for row in rows[:most]]
    left = len(rows) - len(shown)
    cut: list[Item] = [[("dim", f"    … {left} more lines")]] if left else []
    return [head, *shown, *cut]


def plan(entries: object) -> list[Item]:
    """A plan with what is done of it."""
    lines: list[Item] = []
    for entry in _dicts(entries):
        status = str(entry.get("status") or "pending")
        words = one_line(clean(str(entry.get("content") or "")), WIDE)
        mark = {"completed": "✓", "in_progress": "▸"}.get(status, "·")
        lines.append([("good" if status == "completed" else "dim", f"  {mark} "), ("", words)])
    return lines


def permission_request(event: Mapping[str, Any], *, whole: bool = False) -> list[Item]:
    """What the agent wants to do: its diff, else what the tool would be given. `whole` cuts nothing."""
    request = event.get("request")
    call = request.get("toolCall") if isinstance(request, dict) else None
    call = call if isinstance(call, dict) else {}
    name = one_line(clean(str(event.get("tool") or "something")), WIDE)
    kind = one_line(clean(str(event.get("kind") or "")), WIDE)
    lines: list[Item] = [[("warn", "? "), ("bold", name), ("dim", f"  {kind}".rstrip())]]
    for content in _dicts(call.get("content")):
        lines += _content(content, whole=whole)
    if whole or len(lines) == 1:
        lines += _given(call.get("rawInput"), name, whole=whole)
    return lines


def _given(raw: object, name: str, *, whole: bool) -> list[Item]:
    """What a tool would be given, unless its name says it all."""
    if not raw:
        return []
    command = raw.get("command") if isinstance(raw, dict) else None
    if whole:
        text = json.dumps(raw, ensure_ascii=False, indent=2)
        return [[("dim", f"    {row}")] for row in clean(text).split("\n")]
    if isinstance(command, str) and clean(command) in name:
        return []
    text = f"$ {command}" if isinstance(command, str) else json.dumps(raw, ensure_ascii=False)
    return [[("dim", f"  └ {one_line(clean(text), 4 * WIDE)}")]]


def permission_decision(event: Mapping[str, Any]) -> list[Item]:
    word = str(event.get("decision") or "not decided")
    reason = f" ({one_line(clean(str(event['reason'])), 4 * WIDE)})" if event.get("reason") else ""
    style: Any = "bad" if word == "reject" else "good"
    return [[("", "  "), (style, DECISIONS.get(word, one_line(clean(word), WIDE))), ("dim", reason)]]


def turn_end(event: Mapping[str, Any]) -> list[Item]:
    """The last line of a turn: how it ended, what it used."""
    outcome = str(event.get("outcome") or "")
    detail = one_line(clean(str(event.get("error") or "")), 4 * WIDE)
    used = usage(event.get("usage"), event.get("duration_ms"))
    if outcome == "completed":
        reason = str(event.get("stop_reason") or "end_turn")
        odd: Line = [("warn", f"stopped: {one_line(clean(reason), WIDE)}  ")] if reason != "end_turn" else []
        return [[*odd, ("dim", used)]] if odd or used else []
    if event.get("stopped_by"):
        return [[("warn", f"{detail}  "), ("dim", used)]]
    if outcome == "cancelled":
        return [[("warn", "cancelled; the answer so far is kept  "), ("dim", used)]]
    if outcome == "interrupted":
        text = "interrupted: the server stopped. The answer so far is kept; /retry sends the prompt again"
        return [[("warn", text)]]
    word = "it took too long" if outcome == "timed_out" else "failed"
    return [[("bad", f"{word}: {detail}" if detail else word)]]


def usage(used: object, duration_ms: object = None) -> str:
    """`1.2k in · 300 out · $0.0123 · 4.5 s`"""
    parts = []
    if isinstance(used, dict):
        about = "~" if used.get("estimated") else ""
        parts = [f"{about}{tokens(_count(used.get('input_tokens')))} in"]
        parts.append(f"{about}{tokens(_count(used.get('output_tokens')))} out")
        cost = used.get("cost_usd")
        parts += [money(cost)] if isinstance(cost, int | float) else []
    if isinstance(duration_ms, int | float):
        parts.append(f"{duration_ms / 1000:.1f} s")
    return " · ".join(parts)


def message(row: Mapping[str, Any]) -> list[Item]:
    """One message of the transcript."""
    text = clean(str(row.get("content") or ""))
    archived: list[Item] = [[("dim", "(archived)")]] if row.get("archived") else []
    if row.get("role") == "user":
        return [*archived, *prompt(text)]
    lines: list[Item] = [*archived]
    for call in _dicts(row.get("tool_calls")):
        lines += tool(call)
    if row.get("role") == "assistant":
        return [*lines, Block(text)] if text else lines
    return [*lines, [("dim", f"{clean(str(row.get('role')))}: {one_line(text, 4 * WIDE)}")]]


def note(text: str, style: Any = "dim") -> list[Item]:
    """A remark of our own."""
    return [[(style, line)] for line in text.split("\n")]


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _dicts(value: object) -> Iterable[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list | tuple) else []
