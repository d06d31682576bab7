"""The decoder gives the same frames however the bytes are cut, in time that is linear in the bytes."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.wire.sse import HEARTBEAT, Decoder, Frame, encode


def decode(stream: bytes, size: int) -> list[Frame]:
    decoder = Decoder()
    slices = (stream[at : at + size] for at in range(0, len(stream), size))
    return [frame for piece in slices for frame in decoder.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_fields_and_line_ends(end: bytes) -> None:
    stream = end.join(
        [b"id: 7", b"event: ping", b"data: one", b"data:two", b": comment", b"", b"data: x", b"", b""]
    )
    expected = [Frame("ping", "one\ntwo", "7"), Frame("message", "x", "7")]
    for size in range(1, len(stream) + 1):
        assert decode(stream, size) == expected


def test_a_byte_order_mark_is_skipped_only_at_the_start() -> None:
    bom = b"\xef\xbb\xbf"
    for size in (1, 2, 3, 100):
        assert decode(bom + b"data: a\n\n", size) == [Frame("message", "a", "")]
        assert decode(b"data: " + bom + b"a\n\n", size) == [Frame("message", "\ufeffa", "")]


def test_heartbeats_and_half_frames_say_nothing() -> None:
    assert decode(HEARTBEAT * 3 + b"data: cut off", 1) == []
    assert decode(b"event: only\n\nid: 4\n\ndata\n\n", 3) == [Frame("message", "", "4")]


def test_an_id_with_a_nul_is_ignored() -> None:
    assert decode(b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n", 5) == [
        Frame("message", "a", "1"),
        Frame("message", "b", "1"),
    ]


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0")), max_size=8),
    st.integers(1, 40),
)
def test_what_is_encoded_is_decoded(texts: list[str], size: int) -> None:
    stream = b"".join(encode(text.encode(), event="text", id=str(n)) for n, text in enumerate(texts, 1))
    assert decode(stream, size) == [Frame("text", text, str(n)) for n, text in enumerate(texts, 1)]


def test_a_line_of_32_mib_in_small_slices_is_linear() -> None:
    def seconds(size: int) -> float:
        decoder, piece = Decoder(), b"x" * 4096
        start = time.process_time()
        assert list(decoder.feed(b"data: ")) == []
        for _ in range(size // len(piece)):
            assert list(decoder.feed(piece)) == []
        (frame,) = decoder.feed(b"\n\n")
        assert len(frame.data) == size
        return time.process_time() - start

    seconds(1 << 20)
    small, large = seconds(2 << 20), seconds(32 << 20)
    # Quadratic work would be 256 times as much; linear is 16, and the rest is room for a busy machine.
    assert large < 80 * max(small, 0.002)
