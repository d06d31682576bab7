"""How much a JSON text holds, told without parsing it; counted against what a parser finds."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.core.rules.projection import MAX_TOOL_CHARS, shorten
from clawdforge.wire import json_bounds
from clawdforge.wire.json_bounds import (
    has_more_values,
    is_deeper,
    is_larger,
    outside_strings,
    write_briefly,
)

texts = st.text(alphabet=st.sampled_from('"\\,{}[]:a é'), max_size=30)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=40,
)


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(count(item) for item in inner)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max((depth(item) for item in inner), default=0)


@given(values, st.integers(1, 40))
def test_values_are_counted_outside_of_strings(value: Any, piece: int) -> None:
    """Never fewer than there are; an empty list or object may count for one more."""
    data = orjson.dumps(value)
    before = json_bounds.PIECE_BYTES
    try:
        json_bounds.PIECE_BYTES = piece  # type: ignore[misc]  # whatever the pieces are
        marks = b"".join(outside_strings(data))
        found = sum(marks.count(mark) for mark in (b",", b"{", b"["))
        assert count(value) - 1 <= found <= 2 * count(value)
        assert has_more_values(data, found) is False
        assert not found or len(data) <= found - 1 or has_more_values(data, found - 1)
    finally:
        json_bounds.PIECE_BYTES = before  # type: ignore[misc]


@given(values)
def test_depth_is_found_without_recursion(value: Any) -> None:
    deep = depth(value)
    assert not is_deeper(value, deep)
    assert deep == 0 or is_deeper(value, deep - 1)
    for _ in range(5000):
        value = [value]
    assert is_deeper(value, 4000)


@given(values, st.integers(0, 400))
def test_what_is_found_too_large_really_is(value: Any, most: int) -> None:
    if is_larger(value, most):
        assert len(repr(value)) > most


def test_a_tools_input_of_many_values_is_not_written_out_to_be_measured() -> None:
    class Unprintable(dict[str, Any]):
        def __repr__(self) -> str:
            raise AssertionError("a long value was written out")

    assert shorten(Unprintable({"x": [{}] * MAX_TOOL_CHARS})) == {"truncated": True}
    assert shorten({"x": [1, 2]}) == {"x": [1, 2]}


def test_a_long_run_of_backslashes_is_cut_into_pieces_like_anything_else() -> None:
    """A piece ends between two pairs of them, so that no piece is longer than the others."""
    for odd in (b"", rb"\""):
        data = b'["' + b"\\" * (4 * json_bounds.PIECE_BYTES) + odd + b'",[],[]]'
        assert b"".join(outside_strings(data)) == b"[,[],[]]"
        assert len(list(outside_strings(data))) >= 4


def test_a_value_is_written_out_only_when_that_is_short() -> None:
    assert write_briefly({"a": [1, "b"]}, 100) == "{'a': [1, 'b']}"
    assert write_briefly("x" * 500, 100) == "x" * 100
    assert write_briefly([{}] * 500, 100) == "(list)"


def test_no_more_is_counted_than_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it was counted three times over, and nothing else could run meanwhile."""
    counted = 0
    marks = json_bounds._marks

    def count_marks(data: bytes) -> int:
        nonlocal counted
        counted += len(data)
        return marks(data)

    monkeypatch.setattr(json_bounds, "_marks", count_marks)
    assert has_more_values(b"[" + b"{}," * 1_000_000 + b"{}]", 1000)
    assert counted <= 2 * json_bounds.PIECE_BYTES
