"""Walks through a transcript page by page, in both directions, and compares it with what should be seen."""

from collections.abc import Sequence

from clawdforge.core.ports import View
from clawdforge.core.rules.paging import Kept, MessageSpan, Place, read_messages

LIMIT = 3


def check_pages(view: View, session_id: str, seqs: Sequence[int], show: Kept) -> None:
    """Every page, however it is asked for, has the right messages and the right neighbours."""
    assert walk_up(view, session_id, show) == list(seqs)
    assert walk_down(view, session_id, show) == list(seqs)
    end = max(seqs, default=0) + 3
    for seq in sorted({*range(0, end, max(1, end // 8)), *range(max(0, end - 4), end)}):
        for limit in (1, 2, LIMIT):
            later = [one for one in seqs if one > seq]
            earlier = [one for one in seqs if one < seq]
            span = read_messages(view, session_id, Place("after", seq), limit, show)
            _check(span, later[:limit], seqs)
            span = read_messages(view, session_id, Place("before", seq), limit, show)
            _check(span, earlier[-limit:], seqs)
            span = read_messages(view, session_id, Place("around", seq), limit, show)
            found = [row.seq for row in span.rows]
            _check(span, found, seqs)
            assert len(found) == min(limit, len(seqs))
            assert seq not in seqs or seq in found
            if found:
                start = list(seqs).index(found[0])
                assert found == list(seqs[start : start + len(found)]), "nothing is left out in between"


def walk_up(view: View, session_id: str, show: Kept) -> list[int]:
    """From the end to the beginning, as somebody who scrolls back."""
    span = read_messages(view, session_id, Place("before", None), LIMIT, show)
    assert span.next is None
    found = [row.seq for row in span.rows]
    while span.previous is not None:
        span = read_messages(view, session_id, Place("before", span.previous), LIMIT, show)
        assert span.rows
        found[:0] = [row.seq for row in span.rows]
    return found


def walk_down(view: View, session_id: str, show: Kept) -> list[int]:
    span = read_messages(view, session_id, Place(), LIMIT, show)
    assert span.previous is None
    found = [row.seq for row in span.rows]
    while span.next is not None:
        span = read_messages(view, session_id, Place("after", span.next), LIMIT, show)
        assert span.rows
        found += [row.seq for row in span.rows]
    return found


def _check(span: MessageSpan, expected: Sequence[int], seqs: Sequence[int]) -> None:
    """The page, and that its neighbours begin just where it ends; an empty one lies before or after all."""
    found = [row.seq for row in span.rows]
    assert found == list(expected)
    above = [] if span.previous is None else [one for one in seqs if one < span.previous]
    below = [] if span.next is None else [one for one in seqs if one > span.next]
    assert [*above, *found, *below] == list(seqs)
    assert bool(above) == (span.previous is not None)
    assert bool(below) == (span.next is not None)
