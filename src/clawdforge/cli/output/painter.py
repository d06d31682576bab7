"""Lines and blocks to text: plain here, in colours by a module that is only loaded for a terminal."""

from typing import Final

from clawdforge.cli.lazy import load
from clawdforge.cli.output.lines import Block, Item

COLOURS: Final = "clawdforge.cli.output.colour:ColourPainter"


class Painter:
    """Plain text; blocks are left as they were written."""

    def paint(self, items: list[Item], width: int) -> str:
        """Text that ends with a line break, or nothing."""
        return "".join(self.paint_item(item, width) for item in items)

    def paint_item(self, item: Item, width: int) -> str:  # noqa: ARG002 - others wrap
        if isinstance(item, Block):
            return item.text + "\n\n"
        return "".join(text for _, text in item).rstrip() + "\n"


def make_painter(*, colour: bool) -> Painter:
    found: Painter = load(COLOURS)() if colour else Painter()
    return found
