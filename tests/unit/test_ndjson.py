"""Framing and decoding of lines from a program that is not trusted."""

import resource
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.core.pacing.pace import Pace
from clawdforge.jsonrpc import ndjson
from clawdforge.jsonrpc.ndjson import Framer, LargeLine, Line, Oversize, decode_line
from clawdforge.wire.json_bounds import LARGE_BYTES, MAX_LINE_VALUES


def messages(frames: list[Line | Oversize | LargeLine]) -> list[object]:
    return [frame.message if isinstance(frame, Line) else frame for frame in frames]


def test_garbage_blank_lines_and_values_that_are_no_objects_are_skipped() -> None:
    """S0-110."""
    text = b'{"a":1}\nnot json\n\n   \n[1,2]\n"text"\n42\n{"b":2}\r\n{"cut":'
    assert messages(list(Framer().feed(text))) == [{"a": 1}, {"b": 2}]


def test_a_line_separator_inside_a_string_does_not_end_the_line() -> None:
    line = '{"a":"x\u2028y\u0085z"}\n'.encode()
    assert messages(list(Framer().feed(line))) == [{"a": "x\u2028y\u0085z"}]


@given(st.lists(st.dictionaries(st.text(), st.text()), max_size=8), st.integers(1, 40))
def test_lines_come_out_whole_and_in_order_however_they_are_cut(objects: list[object], step: int) -> None:
    data = b"".join(orjson.dumps(item) + b"\n" for item in objects)
    framer = Framer()
    out: list[object] = []
    for start in range(0, len(data), step):
        out += messages(framer.feed(data[start : start + step]))
    assert out == objects
    assert framer.finish() == []


def test_the_size_of_a_line_is_its_bytes() -> None:
    assert Framer().feed('{"a":"é"}\n'.encode()) == [Line({"a": "é"}, 10)]


def test_a_last_line_without_newline_counts() -> None:
    framer = Framer()
    assert framer.feed(b'{"a":1}\n{"b":2}') == [Line({"a": 1}, 7)]
    assert framer.finish() == [Line({"b": 2}, 7)]


@pytest.mark.parametrize("step", [1, 7, 64, 4096])
def test_a_line_beyond_the_limit_is_skipped_to_its_end_and_reported(step: int) -> None:
    long = b'{"id":7,"x":"' + b"y" * 500 + b'"}'
    data = b'{"a":1}\n' + long + b'\n{"b":2}\n'
    framer = Framer(max_line_bytes=100)
    out: list[Line | Oversize | LargeLine] = []
    for start in range(0, len(data), step):
        out += framer.feed(data[start : start + step])
    assert out[0] == Line({"a": 1}, 7)
    assert isinstance(out[1], Oversize)
    assert out[1].dropped_bytes == len(long)
    assert out[1].head.startswith(b'{"id":7,')
    assert len(out[1].head) <= 256
    assert out[2:] == [Line({"b": 2}, 7)]


def test_a_line_of_exactly_the_limit_is_kept() -> None:
    line = b'{"x":"' + b"y" * 92 + b'"}'
    assert len(line) == 100
    assert messages(Framer(max_line_bytes=100).feed(line + b"\n")) == [{"x": "y" * 92}]
    assert isinstance(Framer(max_line_bytes=99).feed(line + b"\n")[0], Oversize)


def test_a_200_mb_line_is_skipped_in_flat_memory() -> None:
    framer = Framer(max_line_bytes=1024 * 1024)
    chunk = b"x" * 262_144
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(800):
        assert framer.feed(chunk) == []
    (lost,) = framer.feed(b"\n")
    assert isinstance(lost, Oversize)
    assert lost.dropped_bytes == 800 * 262_144
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
    assert messages(framer.feed(b'{"ok":true}\n')) == [{"ok": True}]


def test_garbage_is_counted_and_its_end_is_kept() -> None:
    framer = Framer()
    framer.feed(b"Traceback (most recent call last):\n" + b"z" * 5000 + b"\nKeyError: 'x'\n")
    assert framer.garbage_lines == 3
    assert framer.garbage_tail().endswith("KeyError: 'x'")
    assert len(framer.garbage_tail()) <= 2048


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a":"\\ud800"}', {"a": "\ufffd"}),
        (b'{"\\udfff":["x\\ud800y"]}', {"\ufffd": ["x\ufffdy"]}),
        (b'{"a":"\\ud83d\\ude00 \\ud800"}', {"a": "\U0001f600 \ufffd"}),
        (b'{"a":"\xff\xfe"}', {"a": "\ufffd\ufffd"}),
        (b'{"a":"\xed\xa0\x80"}', {"a": "\ufffd\ufffd\ufffd"}),
        (b'{"a":NaN,"b":-Infinity}', {"a": None, "b": None}),
        (b'{"a":NaN,"b":1' + b"0" * 30 + b"}", {"a": None, "b": 1e30}),
        (b'{"a":1' + b"0" * 30 + b"}", {"a": 1e30}),
        (b'{"a":NaN,"b":18446744073709551616}', {"a": None, "b": 1.8446744073709552e19}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":"raw\ttab"}', {"a": "raw\ttab"}),
    ],
)
def test_what_strict_json_forbids_is_read_and_can_be_written_again(line: bytes, value: object) -> None:
    message = decode_line(line)
    assert message == value
    assert orjson.loads(orjson.dumps(message)) == value


@pytest.mark.parametrize("depth", [100, 199, 200, 253, 254, 600, 1000])
def test_nesting_is_cut_where_it_could_not_be_written(depth: int) -> None:
    message = decode_line(b'{"id":1,"a":' + b"[" * depth + b"]" * depth + b"}")
    assert message is not None
    assert message["id"] == 1
    assert orjson.dumps({"an": {"event": message}})


@pytest.mark.parametrize(
    "line",
    [b'{"a":' + b"[" * 200_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"a":' + b"9" * 5000 + b"e9999"],
)
def test_nothing_that_is_sent_raises(line: bytes) -> None:
    assert decode_line(line) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_either_nothing_or_an_object_that_can_be_written(noise: bytes) -> None:
    for line in (noise, b'{"a":"' + noise + b'"}'):
        message = decode_line(line)
        if message is not None:
            assert orjson.dumps(message)


async def test_a_long_line_is_decoded_beside_the_loop_and_in_its_place() -> None:
    long = b'{"text":"' + b"x" * LARGE_BYTES + b'"}'
    framer = Framer()
    frames = framer.feed(b'{"a":1}\n' + long + b'\n{"b":2}\n')
    assert frames[1] == LargeLine(long)
    decoded = [frame async for frame in framer.decode_large(frames, Pace().of("app"))]
    assert messages(list(decoded)) == [{"a": 1}, {"text": "x" * LARGE_BYTES}, {"b": 2}]


async def test_a_line_of_too_many_values_is_dropped_unread() -> None:
    """30 MiB of empty objects once held the whole server up for a minute."""
    many = b'{"id":7,"x":[' + b"{}," * MAX_LINE_VALUES + b"{}]}"
    allowed = b'{"x":[' + b"1," * (MAX_LINE_VALUES - 3) + b"1]}"
    text = orjson.dumps({"text": "{[," * MAX_LINE_VALUES, "more": '\\"' * 50_000})
    framer = Framer()
    frames = framer.feed(b"\n".join((many, allowed, text, b"")))
    lost, kept, spoken = [frame async for frame in framer.decode_large(frames, Pace().of("app"))]
    assert isinstance(lost, Oversize)
    assert (lost.dropped_bytes, lost.head) == (len(many), many[:256])
    assert isinstance(kept, Line)
    assert isinstance(spoken, Line)
    assert spoken.message == orjson.loads(text)


def test_a_line_of_megabytes_is_never_parsed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 24 MiB held the interpreter, and so everybody, for 50 ms."""
    lengths: list[int] = []

    def parse(data: bytes | bytearray) -> Any:
        lengths.append(len(data))
        return orjson.loads(data)

    monkeypatch.setattr(ndjson, "_parse", parse)
    message = {"jsonrpc": "2.0", "params": {"text": 'a "word"\n' * 200_000}}
    line = Framer()._decode(orjson.dumps(message))
    assert isinstance(line, Line)
    assert line.message == message
    assert len(lengths) > 10
    assert max(lengths) < LARGE_BYTES
