"""Tokens that were good a moment ago, so that not every request of a caller reads its token again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.rows import TokenRow
from clawdforge.wire.base import Micros

FRESH: Final = 10 * SECOND
MOST: Final = 1000


class KnownTokens:
    """Exact for what this server changes: while it does nothing is known, nor what was read before. What a
    person changes with SQL counts once the row is read again.

    Where other servers have the same store, nothing is ever known: they may revoke one at any time. It is
    the same once a change has failed, since nobody knows whether, and when, it will be on disk.
    """

    def __init__(self, clock: Clock, *, is_alone: bool) -> None:
        self._clock = clock
        self._is_on = is_alone
        self._changes = 0  # under way
        self._round = 0  # another one after each of them
        self._rows: dict[bytes, tuple[TokenRow, Micros]] = {}

    @property
    def round(self) -> int:
        """To be asked for before a token is read."""
        return self._round

    def find(self, presented: bytes) -> TokenRow | None:
        """By the hash of a token. Whether it has expired is still to be seen."""
        found = self._rows.get(presented)
        if found is None or self._clock.steady() - found[1] >= FRESH:
            return None
        return found[0]

    def keep(self, row: TokenRow, known_from: int) -> None:
        """`known_from` was the round before the row was read."""
        if not self._is_on or self._changes or known_from != self._round:
            return
        if len(self._rows) >= MOST:
            self._rows.clear()
        self._rows[row.hash] = row, self._clock.steady()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """While a token is changed, until that is on disk. What waits for it must not be cancelled."""
        self._changes += 1
        self._forget()
        is_done = False
        try:
            yield
            is_done = True
        finally:
            self._is_on = self._is_on and is_done
            self._changes -= 1
            self._forget()

    def _forget(self) -> None:
        self._round += 1
        self._rows.clear()
