"""Lines and blocks to what a terminal understands. Without colour it is plain text."""

import io
from typing import Final

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.styles import Style as Sheet
from rich.console import Console
from rich.markdown import Markdown

from clawdforge.cli.lines import Block, Item, Line

CODES: Final = {
    "dim": "2",
    "bold": "1",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "added": "32",
    "removed": "31",
    "place": "36",
    "code": "36",
    "tool": "1",
    "you": "34",
}
SHEET: Final = Sheet.from_dict(
    {
        "dim": "fg:ansibrightblack",
        "bold": "bold",
        "good": "fg:ansigreen",
        "bad": "fg:ansired",
        "warn": "fg:ansiyellow",
        "added": "fg:ansigreen",
        "removed": "fg:ansired",
        "place": "fg:ansicyan",
        "code": "fg:ansicyan",
        "tool": "bold",
        "you": "fg:ansiblue",
        "bottom-toolbar": "noreverse fg:ansibrightblack",
    }
)
NARROW: Final = 20


class Painter:
    """`colour` off gives plain text; blocks are then left as they were written."""

    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    def paint(self, items: list[Item], width: int) -> str:
        """Text that ends with a line break, or nothing."""
        return "".join(self._item(item, width) for item in items)

    def _item(self, item: Item, width: int) -> str:
        if isinstance(item, Block):
            return self._block(item.text, width)
        if not self.colour:
            return "".join(text for _, text in item).rstrip() + "\n"
        return "".join(f"\x1b[{CODES[style]}m{text}\x1b[0m" if style else text for style, text in item) + "\n"

    def _block(self, text: str, width: int) -> str:
        if not self.colour:
            return text + "\n\n"
        out = io.StringIO()
        console = Console(
            file=out, width=max(width, NARROW), force_terminal=True, color_system="standard", highlight=False
        )
        console.print(Markdown(text, hyperlinks=False))
        return out.getvalue() + "\n"


def fragments(lines: list[Line]) -> StyleAndTextTuples:
    """Lines for the part of the screen that is drawn again."""
    found: StyleAndTextTuples = []
    for line in lines:
        found += [(f"class:{style}" if style else "", text) for style, text in line]
        found.append(("", "\n"))
    return found
