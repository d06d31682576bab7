"""The live part of the screen: its colours, and lines as the library for terminals takes them."""

from typing import Final

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.styles import Style as Sheet

from clawdforge.cli.output.lines import Line

SHEET: Final = Sheet.from_dict(
    {
        "dim": "fg:ansibrightblack",
        "bold": "bold",
        "good": "fg:ansigreen",
        "bad": "fg:ansired",
        "warn": "fg:ansiyellow",
        "added": "fg:ansigreen",
        "removed": "fg:ansired",
        "hunk": "fg:ansicyan",
        "code": "fg:ansicyan",
        "tool": "bold",
        "you": "fg:ansiblue",
        "bottom-toolbar": "noreverse fg:ansibrightblack",
    }
)


def fragments(lines: list[Line]) -> StyleAndTextTuples:
    """Lines for the part of the screen that is drawn again."""
    found: StyleAndTextTuples = []
    for line in lines:
        found += [(f"class:{style}" if style else "", text) for style, text in line]
        found.append(("", "\n"))
    return found
