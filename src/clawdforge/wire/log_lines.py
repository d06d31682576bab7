"""A line of the log as a person reads it on a terminal: when, what happened, and what it is about."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

COLOURS: Final = {"warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
DIM: Final = "\x1b[2m"
PLAIN: Final = "\x1b[0m"
OURS: Final = ("clawdforge", "uvicorn")
"""Whose names say nothing more: what uvicorn tells, it tells as `uvicorn.error`."""

SHORT: Final = 8


def write_for_people(line: Mapping[str, Any], *, is_coloured: bool) -> str:
    """`line` is what the log holds as JSON. Nothing in it steers the terminal."""
    level = str(line.get("level", "info"))
    words = [] if level in ("info", "debug") else [_paint(level.upper(), COLOURS.get(level), is_coloured)]
    if not str(line.get("logger", "clawdforge")).startswith(OURS):
        words.append(f"{line['logger']}:")
    words.append(_show(str(line.get("msg", ""))))
    about = _paint("  ".join(_list_details(line)), DIM, is_coloured)
    shown = "  ".join(part for part in (_time_of_day(line), " ".join(words), about) if part)
    error = str(line.get("error") or "").rstrip()
    return "\n    ".join([shown, *(_show(row) for row in error.splitlines())])


def _list_details(line: Mapping[str, Any]) -> list[str]:
    found = []
    if isinstance(line.get("ms"), int | float):
        found.append(f"{line['ms']:.0f} ms")
    if line.get("app"):
        found.append(_show(str(line["app"])))
    if line.get("session_id"):
        found.append(f"session {_show(str(line['session_id']))[:SHORT]}")
    if line.get("request_id") and line.get("level") not in ("info", "debug"):
        found.append(f"request {line['request_id']}")
    if line.get("dropped"):
        found.append(f"{line['dropped']} lines like this were left out")
    return found


def _time_of_day(line: Mapping[str, Any]) -> str:
    try:
        return f"{datetime.fromisoformat(str(line['ts'])).astimezone():%H:%M:%S}"
    except (KeyError, ValueError):
        return ""


def _show(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _paint(text: str, colour: str | None, is_coloured: bool) -> str:
    return f"{colour}{text}{PLAIN}" if is_coloured and colour and text else text
