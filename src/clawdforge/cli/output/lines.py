"""What the terminal is given: lines of styled words and blocks of markdown, as plain values."""

import re
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
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
KEPT: Final = frozenset({"code", "added", "removed", "hunk"})
"""Styles of what people copy: a line of it is broken by the terminal, which joins it again."""

COLUMN: Final = re.compile(r"\s*\S+\s{2,}")
HUNK: Final = re.compile(r"^(@@|diff |index |--- |\+\+\+ )")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of markdown, whole."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """One line of a program."""

    text: str
    language: str


Item: TypeAlias = Line | Block | Code


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


def wrap_line(line: Line, width: int) -> list[Line]:
    """The same words in rows of `width` cells, each as far in as the first; in a table, as its last column.

    Without a width, the line as it is.
    """
    text = "".join(part for _, part in line)
    styles = [style for style, part in line for _ in part]
    if not width or not any(styles) or not KEPT.isdisjoint(styles) or len(wrap(text, width)) == 1:
        return [line]
    begin = COLUMN.match(text)
    margin = begin.end() if begin and begin.end() <= width // 2 else len(text) - len(text.lstrip(" "))
    margin = min(margin, width // 2)
    rows: list[Line] = []
    at = 0
    while at < len(text):
        row = wrap(text[at:], width - margin if rows else width)[0]
        found: Line = [("", " " * margin)] if rows and margin else []
        for style, part in groupby(zip(styles[at : at + len(row)], row, strict=True), key=itemgetter(0)):
            found.append((style, "".join(char for _, char in part)))
        rows.append(found)
        at += len(row)
        at += at < len(text) and text[at] == " "  # the one that the break stands for
    return rows


def code_line(line: str, language: str = "") -> Item:
    """A line of code; in a diff, in the colour of its kind."""
    return [("", "  "), *diff_line(line)] if language in ("diff", "patch") else Code(line, language)


def diff_line(line: str) -> Line:
    if HUNK.match(line):
        return [("hunk", line)]
    if line.startswith("+"):
        return [("added", line)]
    return [("removed", line)] if line.startswith("-") else [("dim", line)]
