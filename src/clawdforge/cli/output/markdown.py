"""An answer as it streams: words in, finished pieces out. Only what is unfinished is ever shown twice."""

import re
from dataclasses import dataclass, field
from typing import Final

from clawdforge.cli.output.lines import Block, Item, code_line

FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+)\s*([\w+-]*)")
BULLET: Final = re.compile(r"^([-*+]|\d{1,9}[.)])\s")
TAIL_CHARS: Final = 4096
LONG_BLOCK: Final = 20
"""Lines after which a list or a paragraph is given out in parts: nothing waits for its end for long."""


@dataclass(slots=True)
class MarkdownStream:
    """Cuts a streamed markdown text into blocks at blank lines, and code into lines."""

    _line: list[str] = field(default_factory=list)
    _block: list[str] = field(default_factory=list)
    _fence: str = ""
    _language: str = ""

    def feed(self, text: str) -> list[Item]:
        """What is finished now."""
        if "\n" not in text:
            self._line.append(text)
            return []
        *whole, rest = ("".join(self._line) + text).split("\n")
        self._line = [rest]
        return [item for line in whole for item in self._take(line)]

    def end(self) -> list[Item]:
        """The rest, at the end of the text."""
        line = "".join(self._line)
        rest = self._take(line) if line else []
        self._line, self._fence = [], ""
        return [*rest, *self._flush()]

    def tail(self, lines: int) -> str:
        """The last lines of what is not finished yet, in time that does not grow with what came before."""
        line, size = [], 0
        for piece in reversed(self._line):
            line.append(piece)
            size += len(piece)
            if size > TAIL_CHARS:
                break
        return "\n".join([*self._block[-lines:], "".join(reversed(line))][-lines:])

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
