"""Gathers what an agent says: messages that are nothing but words, one right after another."""

from functools import partial

from clawdforge.core.models.events import Words
from clawdforge.jsonrpc.alike import Alike
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import is_same, plain_words


class Gathering:
    """The words of one prompt that wait to be handed over. Of a flood most lines are not even decoded."""

    def __init__(self) -> None:
        self._words: Words | None = None
        self._alike: Alike | None = None
        self._said: tuple[EventType, Json] | None = None  # the type and the other keys of what is alike
        self._line: bytes | bytearray | None = None  # that came last and was not taken

    def take_line(self, line: bytes | bytearray) -> bool:
        """Whether it differs from one before in nothing but its words."""
        text = None if self._alike is None else self._alike.read(line)
        if text is None or self._said is None or not self._add(*self._said, text, len(line)):
            self._line = line
            return False
        return True

    def take(self, message: Json, size: int) -> bool:
        """Whether this is more of what is being said. What is not comes after that was handed over."""
        line, self._line = self._line, None
        found = plain_words(message)
        if found is None:
            return False
        is_first = self._words is None
        if not self._add(*found, size):
            return False
        if line is not None and not is_first:  # whoever says two things at once may say a thousand
            kind, fields, text = found
            fields = fields if self._words is None else self._words.fields  # those are the same
            self._alike = Alike.learn(line, text, partial(_says, kind, fields))
            self._said = kind, fields
        return True

    def hand_over(self) -> Words | None:
        words, self._words = self._words, None
        return words

    def _add(self, kind: EventType, fields: Json, text: str, size: int) -> bool:
        words = self._words
        if words is None:
            self._words = Words(kind, fields, [text], [size])
            return True
        if words.kind is not kind or not (words.fields is fields or is_same(words.fields, fields)):
            return False
        words.texts.append(text)
        words.sizes.append(size)
        return True


def _says(kind: EventType, fields: Json, message: Json, text: str) -> bool:
    found = plain_words(message)
    return found is not None and found[0] is kind and found[2] == text and is_same(found[1], fields)
