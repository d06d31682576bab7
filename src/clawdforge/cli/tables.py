"""Rows for the terminal and for scripts: aligned for a person, with tabs for a pipe."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

SHORT: Final = 8
TITLE: Final = 60
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"


def session_lines(
    rows: Iterable[Mapping[str, Any]], *, colour: bool, short: bool = True, now: float | None = None
) -> list[str]:
    """One line for each session: id, state, age, agent, turns, title."""
    present = time.time() if now is None else now
    cells = [
        (
            str(row["session_id"])[: SHORT if short else None],
            state_word(row),
            age(present - float(row["updated_at"])),
            str(row["agent"]),
            f"{row['turn_count']} turns" if row["turn_count"] != 1 else "1 turn",
            one_line(str(row["title"]) or "(no title)", TITLE),
        )
        for row in rows
    ]
    return align(cells, colour=colour)


def session_fields(row: Mapping[str, Any]) -> list[str]:
    """The same for a pipe: whole values, in an order that stays."""
    return [
        str(row["session_id"]),
        state_word(row),
        str(row["updated_at"]),
        str(row["agent"]),
        str(row["turn_count"]),
        one_line(str(row["title"]), 500),
    ]


def state_word(row: Mapping[str, Any]) -> str:
    if row["state"] == "ended":
        return "ended"
    return "running" if row.get("running_turn") is not None else "open"


def kept_until(row: Mapping[str, Any]) -> str:
    """When the session closes and when it is deleted, if nothing happens before."""
    if row.get("retention") == "keep":
        return "until you delete it"
    moments = (("closes", row.get("closes_at")), ("is deleted", row.get("deletes_at")))
    told = [f"{word} {time.strftime('%Y-%m-%d %H:%M', time.localtime(at))}" for word, at in moments if at]
    return " and ".join(told) or "-"


def align(cells: Sequence[Sequence[str]], *, colour: bool, head: Sequence[str] = ()) -> list[str]:
    """Columns under each other. The first one is what a person copies, so it stands out."""
    rows = [*([head] if head else []), *cells]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))] if rows else []
    lines = []
    for number, row in enumerate(rows):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if colour and head and number == 0:
            lines.append(f"{DIM}{'  '.join(padded).rstrip()}{PLAIN}")
        elif colour:
            lines.append("  ".join([f"{BOLD}{padded[0]}{PLAIN}", *padded[1:]]).rstrip())
        else:
            lines.append("  ".join(padded).rstrip())
    return lines


def one_line(text: str, most: int) -> str:
    """A text without line breaks and control characters, cut to a length."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def age(secs: float) -> str:
    """`now`, `5m`, `3h`, `12d` ago."""
    if secs < 60:
        return "now"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if secs >= size:
            return f"{int(secs // size)}{unit}"
    return "now"


def tokens(count: int) -> str:
    """`950`, `1.2k`, `3.4M`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def money(cost: float | None) -> str:
    """Dollars as far as they mean something; nothing when nobody said what it cost."""
    if cost is None:
        return ""
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def size(count: int) -> str:
    """`950 B`, `1.2 MiB`, `20 GiB`."""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1000:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if amount >= 100 or unit == "B" else f"{amount:.3g} {unit}"


def bar(part: float, whole: float, held: float = 0, width: int = 20) -> str:
    """How much of the whole something is, and how much more is held for something.

    What is there at all is seen, and what is beyond the whole fills it.
    """
    filled = _cells(part, whole, width)
    reserved = min(width - filled, _cells(held, whole, width))
    return "█" * filled + "▒" * reserved + "░" * (width - filled - reserved)


def _cells(part: float, whole: float, width: int) -> int:
    return 0 if whole <= 0 or part <= 0 else max(1, min(width, round(width * part / whole)))
