"""Lines and blocks to text: plain here, in colours by a module that is only loaded for a terminal."""

from typing import Final

from clawdforge.by_name import load
from clawdforge.cli.output.lines import Block, Code, Item, wrap, wrap_line

COLOURS: Final = "clawdforge.cli.output.colour:ColourPainter"


class Painter:
    """Plain text; blocks are left as they were written."""

    def paint(self, items: list[Item], width: int) -> str:
        """Text that ends with a line break, or nothing. Words are kept whole; a width of 0 breaks nothing."""
        return "".join(self.paint_item(item, width) for item in items)

    def paint_item(self, item: Item, width: int) -> str:
        if isinstance(item, Block):
            lines = item.text.split("\n")
            return (
                "\n".join(row for line in lines for row in (wrap(line, width) if width else [line])) + "\n\n"
            )
        if isinstance(item, Code):
            return f"  {item.text}".rstrip() + "\n"
        broken = wrap_line(item, width)
        return "".join("".join(text for _, text in row).rstrip() + "\n" for row in broken)


def make_painter(*, colour: bool) -> Painter:
    found: Painter = load(COLOURS)() if colour else Painter()
    return found
