"""Waiting for an agent's memory: as long as its home moves, and no longer than a bound."""

from collections.abc import Hashable, Iterator
from pathlib import Path

from clawdforge.drivers.folders.stillness import MOST, look_at, until_still


class Looks:
    """Sees one thing after the other, the last for ever."""

    def __init__(self, seen: Iterator[Hashable]) -> None:
        self._seen = seen
        self._last: Hashable = None
        self.count = 0

    def __call__(self) -> Hashable:
        self.count += 1
        self._last = next(self._seen, self._last)
        return self._last


async def test_it_waits_as_long_as_something_moves() -> None:
    looks = Looks(iter("abcd"))
    assert await until_still(looks, 0.001)
    assert looks.count == 5


async def test_what_stands_still_is_looked_at_twice() -> None:
    looks = Looks(iter("a"))
    assert await until_still(looks, 0.001)
    assert looks.count == 2


async def test_what_never_stands_still_is_not_waited_for_for_ever() -> None:
    looks = Looks(iter(range(1000)))
    assert not await until_still(looks, 0.001)
    assert looks.count == MOST + 1


def test_a_home_looks_different_when_a_file_was_written(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("1")
    (tmp_path / "cache").mkdir()
    first = look_at(tmp_path, frozenset({"cache"}))
    assert look_at(tmp_path, frozenset({"cache"})) == first
    (tmp_path / "cache" / "big").write_text("x")
    assert look_at(tmp_path, frozenset({"cache"})) == first
    (tmp_path / "memory").write_text("12")
    assert look_at(tmp_path, frozenset({"cache"})) != first


def test_a_home_that_is_not_there_looks_the_same(tmp_path: Path) -> None:
    assert look_at(tmp_path / "none", frozenset()) == look_at(tmp_path / "none", frozenset())
