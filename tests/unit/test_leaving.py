"""What was entered is left, the last first, whatever one of them raises."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clawdforge.http.leaving import Leaving


def test_all_is_left_in_order_and_once() -> None:
    left: list[int] = []

    @contextmanager
    def place(number: int) -> Iterator[int]:
        yield number
        left.append(number)
        if number == 2:
            raise KeyError(number)

    leaving = Leaving()
    assert [leaving.enter_context(place(number)) for number in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(KeyError):
        leaving.close()
    leaving.close()
    assert left == [3, 2, 1]


def test_what_refuses_to_be_entered_is_not_left() -> None:
    class Full:
        def __enter__(self) -> None:
            raise KeyError

        def __exit__(self, *_: object) -> None:
            pytest.fail("it was never entered")

    leaving = Leaving()
    with pytest.raises(KeyError):
        leaving.enter_context(Full())
    leaving.close()
