"""Lines in colours, and markdown as a terminal shows it."""

import io
from typing import Final

from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax

from clawdforge.cli.output.lines import Block, Code, Item, Line, wrap_line
from clawdforge.cli.output.painter import Painter

CODES: Final = {
    "dim": "2",
    "bold": "1",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "added": "32",
    "removed": "31",
    "hunk": "36",
    "code": "36",
    "tool": "1",
    "you": "34",
}
NARROW: Final = 20


def _paint_row(row: Line) -> str:
    return "".join(f"\x1b[{CODES[style]}m{text}\x1b[0m" if style else text for style, text in row)


class ColourPainter(Painter):
    def paint_item(self, item: Item, width: int) -> str:
        if isinstance(item, Block):
            return self._paint_block(item.text, width)
        if isinstance(item, Code):
            return self._paint_code(item)
        return "".join(f"{_paint_row(row)}\n" for row in wrap_line(item, width))

    def _paint_code(self, code: Code) -> str:
        """In the terminal's own colours. The terminal breaks a long line, and joins it when it is copied."""
        shown = Syntax(code.text, code.language or "text", theme="ansi_dark").highlight(code.text)
        shown.rstrip()
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, color_system="standard", highlight=False)
        console.print(shown, soft_wrap=True, end="")
        return f"  {out.getvalue()}\n"

    def _paint_block(self, text: str, width: int) -> str:
        out = io.StringIO()
        console = Console(
            file=out, width=max(width, NARROW), force_terminal=True, color_system="standard", highlight=False
        )
        console.print(Markdown(text, hyperlinks=False))
        return out.getvalue() + "\n"
