"""Events on their way: as an agent sends them, as drafts, and as they are stored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final, NamedTuple

import orjson

from clawdforge.wire.base import Json, Micros
from clawdforge.wire.event import EventType, encode_bodies, encode_body
from clawdforge.wire.event_bytes import Part, nest_bytes, nested_parts, unnest_bytes
from clawdforge.wire.event_forms import SPOKEN, Form, is_from_agent
from clawdforge.wire.json_bounds import is_larger

MOST_WORDS: Final = 1 << 19
"""Characters of one event. One of 24 MiB was one write, which kept all others waiting for 0.1 s."""

MOST_BESIDE: Final = 4096
"""What stands beside the words is in each of the events, so words with more than that stay in one."""


class AgentEvent(NamedTuple):
    """What an agent said or did, as its driver understood it: the type, and the keys of the compact event."""

    kind: EventType
    fields: Json

    def in_parts(self) -> "Iterator[AgentEvent]":
        """The event itself, or, if it says a lot, several that say the same one after another."""
        words = self.fields.get("content") if self.kind in SPOKEN else None
        if not isinstance(words, str) or len(words) <= MOST_WORDS:
            yield self
            return
        beside = {name: value for name, value in self.fields.items() if name != "content"}
        if is_larger(beside, MOST_BESIDE):
            yield self
            return
        for start in range(0, len(words), MOST_WORDS):
            yield AgentEvent(self.kind, {**self.fields, "content": words[start : start + MOST_WORDS]})


@dataclass(slots=True)
class Words:
    """Several things that an agent said, one right after another, that differ in nothing but their words.

    `fields` are the keys that they have besides, and `sizes` are those of their lines.
    """

    kind: EventType
    fields: Json
    texts: list[str]
    sizes: list[int]

    def events(self) -> Iterator[tuple[AgentEvent, int]]:
        """Each by itself, with the size of its line."""
        for text, size in zip(self.texts, self.sizes, strict=True):
            yield AgentEvent(self.kind, {**self.fields, "content": text}), size


class Draft(NamedTuple):
    """An event that has no number yet; `body` is encoded already, all but its seq."""

    type: EventType
    turn: int | None
    body: bytes


def draft(kind: EventType, turn: int | None, at: Micros, fields: Mapping[str, Any] | None = None) -> Draft:
    """One of our own events."""
    return Draft(kind, turn, encode_body(kind, turn, at, fields or {}))


def draft_of(event: AgentEvent, turn: int | None, at: Micros) -> Draft:
    """What the agent sent, as an event. A list of commands is the session's state, never an answer."""
    turn = None if event.kind is EventType.COMMANDS else turn
    return Draft(event.kind, turn, encode_body(event.kind, turn, at, event.fields))


def drafts_of(words: Words, turn: int | None, at: Micros) -> list[Draft]:
    """The same for many."""
    bodies = encode_bodies(words.kind, turn, at, words.fields, words.texts)
    return list(map(Draft._make, zip(repeat(words.kind), repeat(turn), bodies)))


def first_of(drafts: Sequence[Draft], size: int) -> Sequence[Draft]:
    """The first of them, if all are more than twice as long as that together. None from the answer on."""
    if sum(len(draft.body) for draft in drafts) <= 2 * size:
        return ()
    count = taken = 0
    while taken < size and drafts[count].type is not EventType.RESPONSE:
        taken += len(drafts[count].body)
        count += 1
    return drafts[:count]


@dataclass(slots=True, weakref_slot=True)
class StoredEvent:
    """An event as it lies in the log: its number, and the bytes that all its readers share.

    `form` is the one that it was written in: version 0.3 wrote nested events. It never changes; what is made
    for the readers of the other form is made once, and kept beside it.
    """

    seq: int
    type: str
    turn: int | None
    data: bytes
    form: Form = Form.COMPACT
    _other: bytes | None = field(default=None, repr=False, compare=False)
    _parts: list[Part] | None = field(default=None, repr=False, compare=False)

    def in_form(self, form: Form) -> bytes:
        if not self._needs_change(form):
            return self.data
        if self._other is None:
            self._other = self.make(form)
        return self._other

    def make(self, form: Form) -> bytes:
        """The same for whoever keeps what is made of it, so that it is not kept here as well."""
        if not self._needs_change(form):
            return self.data
        return nest_bytes(self.type, self.data) if form is Form.NESTED else unnest_bytes(self.data)

    def prepare(self, form: Form) -> None:
        """Make what `slices` needs: parts of its own bytes where that is possible, else the other form."""
        if self.is_prepared(form):
            return
        if form is Form.NESTED:
            self._parts = nested_parts(self.type, self.data)
        if self._parts is None:
            self.in_form(form)

    def is_prepared(self, form: Form) -> bool:
        """Whether `slices` has nothing to compute. Words are found without a look at all of them."""
        if form is Form.NESTED and self._parts is None and self.type in SPOKEN and self._needs_change(form):
            self._parts = nested_parts(self.type, self.data)
        has_other = self._other is not None or (form is Form.NESTED and self._parts is not None)
        return has_other or not self._needs_change(form)

    def slices(self, form: Form, size: int) -> Iterator[bytes]:
        """Its bytes in a form, so many at a time."""
        self.prepare(form)
        changes = form is Form.NESTED and self._needs_change(form)
        for part in self._parts if changes and self._parts is not None else (self.in_form(form),):
            view = memoryview(part)
            yield from (bytes(view[start : start + size]) for start in range(0, len(view), size))

    def _needs_change(self, form: Form) -> bool:
        return form is not self.form and is_from_agent(self.type)

    def decode(self) -> Json:
        """Its keys in the compact form."""
        found: Json = orjson.loads(self.in_form(Form.COMPACT))
        return found
