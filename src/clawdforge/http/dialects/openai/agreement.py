"""Whether the history that a caller sends is the one that a session has, or where the two part.

A turn that did not end well may be missing on the caller's side, which was told that it failed; and of the
last answer the caller may have only the beginning, if it stopped reading. White space is not compared: front
ends cut out what was progress, and leave more or less of it behind.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from clawdforge.core.models.rows import MessageRow
from clawdforge.http.dialects.openai.asked import Said
from clawdforge.wire.message import Role

MOST_PLACES: Final = 64
"""Of those that equal messages leave open: callers leave out all turns that failed, or none. A thousand such
turns would otherwise be compared with as many messages each."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was said in one turn, or without one. `optional` if a caller need not know of it."""

    turn: int
    said: tuple[Said, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """`whole` if both have the same; else `after` is the turn up to which they have, if there is one."""

    whole: bool
    after: int | None = None


def list_exchanges(rows: Sequence[MessageRow], failed: Collection[int]) -> list[Exchange]:
    """`failed` are the turns that did not end well."""
    return list(_exchanges(_told(rows), failed))


def _told(rows: Iterable[MessageRow]) -> list[MessageRow]:
    return [row for row in rows if row.role != Role.TOOL and not row.is_summary]


def _exchanges(rows: Sequence[MessageRow], failed: Collection[int]) -> Iterator[Exchange]:
    for turn, group in groupby(rows, key=lambda row: row.turn or 0):
        said = tuple(Said(Role(row.role), _squeeze(row.content)) for row in group)
        if not turn:  # imported or posted: each stands for itself
            yield from (Exchange(0, (one,), optional=False) for one in said)
            continue
        answered = any(one.role is Role.ASSISTANT for one in said)
        yield Exchange(turn, said, optional=turn in failed or not answered)


class Comparison:
    """Of a session, which is fed page by page and not kept, with what was sent."""

    def __init__(self, failed: Collection[int], sent: Sequence[Said]) -> None:
        self._failed = failed
        self._theirs = [Said(one.role, _squeeze(one.text)) for one in sent]
        self._places = {0}  # how many of theirs may be accounted for by what came so far
        self._after = 0 if not self._theirs else None
        self._last: list[MessageRow] = []  # the last turn so far, which may go on, or be the last of all

    def feed(self, rows: Iterable[MessageRow]) -> bool:
        """Take the messages that come next; whether any more could still make the two agree."""
        told = [*self._last, *_told(rows)]
        first = len(told)
        while first and (first == len(told) or (told[-1].turn and told[first - 1].turn == told[-1].turn)):
            first -= 1
        self._last = told[first:]
        return self._take(told[:first], is_end=False)

    def end(self) -> Agreement:
        """There are no more messages, or no more are needed."""
        agrees = bool(self._places) and self._take(self._last, is_end=True)
        return Agreement(whole=agrees and len(self._theirs) in self._places, after=self._after)

    def _take(self, rows: Sequence[MessageRow], *, is_end: bool) -> bool:
        for exchange in _exchanges(rows, self._failed):
            found = {end for place in self._places for end in self._ends(exchange, place, is_end)}
            self._places = found | self._places if exchange.optional else found
            if not self._places:
                return False
            if len(self._places) > MOST_PLACES:
                first_to_last = sorted(self._places)
                self._places = {*first_to_last[: MOST_PLACES // 2], *first_to_last[-MOST_PLACES // 2 :]}
            if len(self._theirs) in self._places:
                self._after = exchange.turn or self._after
        return True

    def _ends(self, exchange: Exchange, place: int, is_last: bool) -> Iterator[int]:
        for count in range(len(exchange.said), 0, -1):
            sent = self._theirs[place : place + count]
            if len(sent) == count and all(
                _is_same(own, other, may_be_cut=is_last)
                for own, other in zip(exchange.said, sent, strict=False)
            ):
                yield place + count
            if not exchange.optional:
                return


def agrees_after(ours: Sequence[Exchange], turn: int) -> bool:
    """Whether nothing that counts was said after this turn."""
    numbers = [exchange.turn for exchange in ours]
    return turn in numbers and all(
        exchange.optional for exchange in ours[len(numbers) - numbers[::-1].index(turn) :]
    )


def agrees_on_instructions(ours: Sequence[str], sent: Sequence[Said]) -> bool:
    """Whether instructions that are sent without a history are those that the session began with."""
    return [_squeeze(one.text) for one in sent] == list(map(_squeeze, ours))


def _is_same(own: Said, other: Said, *, may_be_cut: bool) -> bool:
    if own.role is not other.role:
        return False
    cut = may_be_cut and own.role is Role.ASSISTANT and own.text.startswith(other.text)
    return cut or own.text == other.text


def _squeeze(text: str) -> str:
    return "".join(text.split())
