"""Lines that differ from one before them in nothing but a text: that is read without the rest.

Nearly all lines of an agent are chunks of an answer. To make objects of such a line takes several times as
long as to compare what stands around its text, and to decode that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeAlias

import orjson

from clawdforge.wire.base import Json

Line: TypeAlias = bytes | bytearray
PROBE: Final = "\N{BLACK SQUARE} another text"


class Gatherer(Protocol):
    """Takes many short notifications at once. Nothing else happens until they are handed over."""

    def gather_line(self, line: Line) -> bool:
        """Whether it takes in a line that nobody has decoded; what it does not comes to `gather` next."""
        ...

    def gather(self, message: Json, size: int) -> bool:
        """Whether it takes a notification in, in its order; what it does not is handled by itself."""
        ...

    async def hand_over(self) -> None:
        """Handle what was gathered."""
        ...


@dataclass(frozen=True, slots=True)
class Alike:
    """What stands before the text and behind it, without its quotes."""

    before: bytes
    behind: bytes

    @classmethod
    def learn(cls, line: Line, text: str, says: Callable[[Json, str], bool]) -> Self | None:
        """From a line with this text; None where that cannot be found in it.

        Another text is put in its place; `says` tells whether a message says that and is the same besides.
        Then, whatever text stands there, as JSON writes it, the line means the same but for that.
        """
        said = orjson.dumps(text)
        place = line.rfind(said)
        if place < 0 or text == PROBE:  # in its own place that would tell nothing
            return None
        found = cls(bytes(line[:place]), bytes(line[place + len(said) :]))
        try:
            message = orjson.loads(found.before + orjson.dumps(PROBE) + found.behind)
        except orjson.JSONDecodeError:  # it was only read leniently
            return None
        return found if isinstance(message, dict) and says(message, PROBE) else None

    def read(self, line: Line) -> str | None:
        """The text of a line like that; None where it is another one."""
        if not (line.startswith(self.before) and line.endswith(self.behind)):
            return None
        said = line[len(self.before) : len(line) - len(self.behind)]
        try:
            text = orjson.loads(said)
        except orjson.JSONDecodeError:  # two quotes were one, or what is between them is no text
            return None
        return text if isinstance(text, str) else None
