"""Whether the history that a caller sends is the one that a session has, or where the two part.

A turn that did not end well may be missing on the caller's side, which was told that it failed; and of the
last answer the caller may have only the beginning, if it stopped reading. White space is not compared: front
ends cut out what was progress, and leave more or less of it behind.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from clawdforge.core.model import MessageRow
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
    told = [row for row in rows if row.role != Role.TOOL and not row.is_summary]
    return list(_exchanges(told, failed))


def _exchanges(rows: Sequence[MessageRow], failed: Collection[int]) -> Iterator[Exchange]:
    for turn, group in groupby(rows, key=lambda row: row.turn or 0):
        said = tuple(Said(Role(row.role), _squeeze(row.content)) for row in group)
        if not turn:  # imported or posted: each stands for itself
            yield from (Exchange(0, (one,), optional=False) for one in said)
            continue
        answered = any(one.role is Role.ASSISTANT for one in said)
        yield Exchange(turn, said, optional=turn in failed or not answered)


def compare(ours: Sequence[Exchange], sent: Sequence[Said]) -> Agreement:
    theirs = [Said(one.role, _squeeze(one.text)) for one in sent]
    places = {0}  # how many of theirs may be accounted for by what came so far
    after = 0 if not theirs else None
    for number, exchange in enumerate(ours, 1):
        is_last = number == len(ours)
        found = {end for place in places for end in _ends(exchange, theirs, place, is_last=is_last)}
        places = found | places if exchange.optional else found
        if not places:
            return Agreement(whole=False, after=after)
        if len(places) > MOST_PLACES:
            first_to_last = sorted(places)
            places = {*first_to_last[: MOST_PLACES // 2], *first_to_last[-MOST_PLACES // 2 :]}
        if len(theirs) in places:
            after = exchange.turn or after
    return Agreement(whole=len(theirs) in places, after=after)


def agrees_after(ours: Sequence[Exchange], turn: int) -> bool:
    """Whether nothing that counts was said after this turn."""
    numbers = [exchange.turn for exchange in ours]
    return turn in numbers and all(
        exchange.optional for exchange in ours[len(numbers) - numbers[::-1].index(turn) :]
    )


def agrees_on_instructions(ours: Sequence[str], sent: Sequence[Said]) -> bool:
    """Whether instructions that are sent without a history are those that the session began with."""
    return [_squeeze(one.text) for one in sent] == list(map(_squeeze, ours))


def _ends(exchange: Exchange, theirs: Sequence[Said], place: int, *, is_last: bool) -> Iterator[int]:
    for count in range(len(exchange.said), 0, -1):
        sent = theirs[place : place + count]
        if len(sent) == count and all(
            _is_same(own, other, may_be_cut=is_last) for own, other in zip(exchange.said, sent, strict=False)
        ):
            yield place + count
        if not exchange.optional:
            return


def _is_same(own: Said, other: Said, *, may_be_cut: bool) -> bool:
    if own.role is not other.role:
        return False
    cut = may_be_cut and own.role is Role.ASSISTANT and own.text.startswith(other.text)
    return cut or own.text == other.text


def _squeeze(text: str) -> str:
    return "".join(text.split())
