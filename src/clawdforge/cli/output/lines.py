"""What the terminal is given: lines of styled words and blocks of markdown, as plain values."""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from unicodedata import east_asian_width

Style = Literal["", "dim", "bold", "good", "bad", "warn", "added", "removed", "hunk", "code", "tool", "you"]
Line: TypeAlias = list[tuple[Style, str]]

ESCAPES: Final = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links, the clipboard
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor, the screen
    r"|\x1b[@-Z\\-_]?"
)
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HUNK: Final = re.compile(r"^(@@|diff |index |--- |\+\+\+ )")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of markdown, whole."""

    text: str


Item: TypeAlias = Line | Block


def clean(text: str) -> str:
    """An agent's text without the control codes that would steer the terminal."""
    return CONTROLS.sub("", ESCAPES.sub("", text.replace("\r\n", "\n")))


def wrap(text: str, width: int) -> list[str]:
    """Rows that fit into `width` cells each, broken between words where that can be."""
    room = max(width, 2) - 1
    rows, row, used = [], "", 0
    for char in text:
        if used + _cells(char) > room:
            if char == " ":
                rows.append(row)
                row, used = "", 0
                continue
            done, space, begun = row.rpartition(" ")
            whole = not space or not done.strip()  # one long word, or nothing but the margin before it
            rows.append(row if whole else done)
            row = "" if whole else begun
            used = sum(map(_cells, row))
        row, used = row + char, used + _cells(char)
    return [*rows, row]


def _cells(char: str) -> int:
    """A wide character takes two."""
    return 2 if east_asian_width(char) in "WF" else 1


def code_line(line: str, language: str = "") -> Line:
    """A line of code; in a diff, in the colour of its kind."""
    return [("", "  "), *diff_line(line)] if language in ("diff", "patch") else [("", "  "), ("code", line)]


def diff_line(line: str) -> Line:
    if HUNK.match(line):
        return [("hunk", line)]
    if line.startswith("+"):
        return [("added", line)]
    return [("removed", line)] if line.startswith("-") else [("dim", line)]
