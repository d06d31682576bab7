"""A transcript as one HTML file: what was said stands in it, made safe, and no piece of it is long."""

from html import unescape

import pytest

from clawdforge.http.replies.transcript_page import GROUP_CHARS, SLICE_CHARS, page
from tests.conformance.stores.samples import a_message, a_session

GROWS = len("&quot;")
"""So much longer may a character become that is made safe; or so many bytes may it have."""


@pytest.mark.parametrize("length", [0, 1, SLICE_CHARS - 1, SLICE_CHARS, SLICE_CHARS + 1, 9 * GROUP_CHARS])
@pytest.mark.parametrize("letter", ['"', "&", "ü", "x"])
def test_a_long_text_is_whole_and_in_short_pieces(letter: str, length: int) -> None:
    said = letter * length
    row = a_message("s", said, role="assistant", thinking=said, tool_calls=[{"title": said}])
    pieces = list(page(a_session(session_id="s"), [row]))
    assert max(map(len, pieces)) <= (GROUP_CHARS + SLICE_CHARS) * GROWS
    whole = b"".join(pieces).decode()
    assert unescape(whole).count(said) >= 3
    assert whole.count("<section>") == whole.count("</section>") == 1
    assert (f"<pre>{said}</pre>" in unescape(whole)) is bool(length)


def test_many_short_messages_are_sent_together() -> None:
    rows = [a_message("s", f"number {number}") for number in range(3000)]
    pieces = list(page(a_session(session_id="s"), rows))
    assert len(pieces) < 30
    assert max(map(len, pieces)) <= 2 * GROUP_CHARS
    whole = b"".join(pieces).decode()
    assert all(f"<pre>number {number}</pre>" in whole for number in (0, 1, 1500, 2999))


def test_hostile_words_stay_words() -> None:
    row = a_message("s", "</pre><script>alert(1)</script>", tool_calls=[{"title": "<img src=x>"}])
    whole = b"".join(page(a_session(session_id="s", title="<b>"), [row])).decode()
    assert "<script" not in whole
    assert "<img" not in whole
    assert "<title>&lt;b&gt;</title>" in whole
