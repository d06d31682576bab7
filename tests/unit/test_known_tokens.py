"""A token that is revoked is refused at once, whatever was known of it a moment ago."""

from dataclasses import replace

import pytest

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.rows import TokenRow
from clawdforge.core.services.known_tokens import FRESH, MOST, KnownTokens

ROW = TokenRow(token_id="t", app_name="a", hash=b"h", created_at=1)


class Watch(SystemClock):
    """A clock that goes when a test says so."""

    def __init__(self) -> None:
        self.at = 1000 * SECOND

    def steady(self) -> int:
        return self.at


def known(*, is_alone: bool = True) -> tuple[KnownTokens, Watch]:
    watch = Watch()
    return KnownTokens(watch, is_alone=is_alone), watch


def test_what_was_read_is_known_for_a_while() -> None:
    tokens, watch = known()
    tokens.keep(ROW, tokens.round)
    assert tokens.find(b"h") is ROW
    assert tokens.find(b"x") is None
    watch.at += FRESH
    assert tokens.find(b"h") is None


def test_nothing_is_known_while_a_token_changes_or_from_before() -> None:
    tokens, _ = known()
    tokens.keep(ROW, tokens.round)
    before = tokens.round
    with tokens.changing():
        assert tokens.find(b"h") is None
        during = tokens.round
        tokens.keep(ROW, during)
        assert tokens.find(b"h") is None
    for read_in in (before, during):
        tokens.keep(ROW, read_in)
        assert tokens.find(b"h") is None, "it was read before the change was on disk"
    tokens.keep(ROW, tokens.round)
    assert tokens.find(b"h") is ROW


def test_of_two_changes_both_have_to_end() -> None:
    tokens, _ = known()
    with tokens.changing():
        with tokens.changing():
            pass
        tokens.keep(ROW, tokens.round)
        assert tokens.find(b"h") is None


def test_nothing_is_known_after_a_change_that_failed() -> None:
    """It may reach the disk later."""
    tokens, _ = known()
    with pytest.raises(OSError), tokens.changing():
        raise OSError
    tokens.keep(ROW, tokens.round)
    assert tokens.find(b"h") is None


def test_nothing_is_known_where_others_may_change_it() -> None:
    tokens, _ = known(is_alone=False)
    tokens.keep(ROW, tokens.round)
    assert tokens.find(b"h") is None


def test_many_tokens_do_not_fill_the_memory() -> None:
    tokens, _ = known()
    for number in range(MOST + 1):
        tokens.keep(replace(ROW, hash=str(number).encode()), tokens.round)
    assert len(tokens._rows) == 1
