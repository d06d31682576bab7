"""An answer as it streams: words in, finished pieces out. Only what is unfinished is ever shown twice."""

import re
from dataclasses import dataclass, field
from typing import Final

from clawdforge.cli.lines import Block, Item, Line, code_line

FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+)\s*([\w+-]*)")
BULLET: Final = re.compile(r"^([-*+]|\d{1,9}[.)])\s")
LONG_BLOCK: Final = 20
"""Lines after which a list or a paragraph is given out in parts: nothing waits for its end for long."""


@dataclass(slots=True)
class MarkdownStream:
    """Cuts a streamed markdown text into blocks at blank lines, and code into lines."""

    _line: str = ""
    _block: list[str] = field(default_factory=list)
    _fence: str = ""
    _language: str = ""

    def feed(self, text: str) -> list[Item]:
        """What is finished now."""
        *whole, self._line = (self._line + text).split("\n")
        return [item for line in whole for item in self._take(line)]

    def end(self) -> list[Item]:
        """The rest, at the end of the text."""
        rest = self._take(self._line) if self._line else []
        self._line, self._fence = "", ""
        return [*rest, *self._flush()]

    def tail(self, lines: int) -> str:
        """The last lines of what is not finished yet."""
        return "\n".join([*self._block[-lines:], self._line][-lines:])

    def _take(self, line: str) -> list[Item]:
        fence = FENCE.match(line)
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not fence[2]:
                self._fence = ""
                return []
            return [code_line(line, self._language)]
        if fence:
            self._fence, self._language = fence[1], fence[2].lower()
            return self._flush()
        if not line.strip():
            return self._flush()
        full = len(self._block) >= LONG_BLOCK and not self._block[0].lstrip().startswith("|")
        done = self._flush() if full and (BULLET.match(line) or not BULLET.match(self._block[0])) else []
        self._block.append(line)
        return done

    def _flush(self) -> list[Item]:
        text, self._block = "\n".join(self._block), []
        return [Block(text)] if text else []


def plain(items: list[Item]) -> str:
    """Items as text without any style."""
    return "\n".join(item.text if isinstance(item, Block) else text_of(item) for item in items)


def text_of(line: Line) -> str:
    return "".join(text for _, text in line)
