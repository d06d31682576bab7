"""Long texts in JSON are parsed in pieces: what comes out is what the parser gives for all of it at once."""

import json
import random
import secrets
from typing import Any

import orjson
import pytest

from clawdforge.http.requests.json_bodies import FEW_VALUES, parse_body
from clawdforge.jsonrpc.ndjson import decode_large_line, decode_line
from clawdforge.wire import json_pieces
from clawdforge.wire.errors import InvalidJson
from clawdforge.wire.json_bounds import LARGE_BYTES
from clawdforge.wire.json_pieces import parse_in_pieces

PIECE = 64
ATOMS = (
    *("a", "bc", "\u00e9", "\U0001f600", "\\", '"', "\n", "\u0007", "/", "\ufeff", "\u2028", "{", "}", ","),
    *("\\\\", '\\"', "\\u", "ud83d", "0", "[", ":"),
)


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "PIECE_BYTES", PIECE)


def a_text(chance: random.Random, most: int) -> str:
    return "".join(chance.choices(ATOMS, k=chance.randrange(most)))


def a_value(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.randrange(6 if depth else 3)
    if kind < 3:
        return (a_text(chance, 400), a_text(chance, 10), chance.randrange(1000))[kind]
    if kind == 3:
        return [a_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    return {a_text(chance, 100): a_value(chance, depth - 1) for _ in range(chance.randrange(5))}


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("escapes", [True, False])
def test_it_is_the_same_as_at_once(seed: int, escapes: bool) -> None:
    chance = random.Random(seed)  # noqa: S311 - for tests
    for _ in range(40):
        value = a_value(chance)
        data = json.dumps(value, ensure_ascii=escapes).encode()
        assert parse_in_pieces(data, orjson.loads) == value
        assert parse_in_pieces(bytearray(data), orjson.loads) == value


@pytest.mark.usefixtures("short_pieces")
def test_no_piece_that_is_parsed_is_long() -> None:
    lengths: list[int] = []

    def parse(data: bytes | bytearray) -> Any:
        lengths.append(len(data))
        return orjson.loads(data)

    value = {"a": "x\u00e9" * 5000, "b": ['"\\' * 5000, 1, "short"], "c": "\U0001f600" * 3000}
    assert parse_in_pieces(json.dumps(value).encode(), parse) == value
    assert len(lengths) > 500
    assert max(lengths[1:]) <= PIECE + 3


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("seed", range(20))
def test_a_line_of_an_agent_is_read_as_leniently(seed: int) -> None:
    """Lone surrogates, raw control characters, broken letters, cut short, with bytes changed anywhere."""
    chance = random.Random(seed)  # noqa: S311 - for tests
    for _ in range(60):
        data = bytearray(json.dumps({"k": a_text(chance, 300), "v": a_value(chance)}).encode())
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(data))
            data[place : place + chance.randrange(3)] = chance.choice(
                (b"\\ud83d", b"\\udc00", b"\t", b"\xff", b"\x80\x80", b'"', b"\\", b"", b"NaN", b"\xc3")
            )
        assert _as_said(decode_large_line(data)) == _as_said(decode_line(data))


def _as_said(value: Any) -> Any:
    """Broken letters are replaced by as many marks as there are pieces of them: the number may differ."""
    text = json.dumps(value, ensure_ascii=False)
    while "\ufffd\ufffd" in text:
        text = text.replace("\ufffd\ufffd", "\ufffd")
    return text


@pytest.mark.usefixtures("short_pieces")
def test_what_stands_for_a_text_cannot_be_said_by_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "n" * 32)
    long = "x" * 200
    value = {"a": long, long: "n" * 40, "b": "n" * 32 + "00000005"}
    assert parse_in_pieces(json.dumps(value).encode(), orjson.loads) == value


@pytest.mark.usefixtures("short_pieces")
@pytest.mark.parametrize("levels", [150, 600, 1000])
def test_how_deep_it_is_is_nobodys_trouble(levels: int) -> None:
    """Beside a long text; without one it is parsed at once."""
    data = b'{"text":"' + b"x" * 500 + b'","deep":' + b"[" * levels + b"]" * levels + b"}"
    assert parse_in_pieces(data, orjson.loads)["text"] == "x" * 500
    assert decode_large_line(data) == decode_line(data)


@pytest.mark.parametrize("levels", [600, 1000])
def test_a_large_body_that_is_deep_is_refused_as_such(levels: int) -> None:
    long = b"x" * (LARGE_BYTES + 1)
    with pytest.raises(InvalidJson, match="nested too deeply"):
        parse_body(b'{"text":"' + long + b'","deep":' + b"[" * levels + b"]" * levels + b"}", FEW_VALUES)


def test_what_is_wrong_with_a_large_body_is_told_without_a_place_in_a_piece() -> None:
    with pytest.raises(InvalidJson, match="not valid JSON") as told:
        parse_body(b'{"text":"' + b"x" * (LARGE_BYTES + 1) + b"\x01" + b'"}', FEW_VALUES)
    assert "column" not in str(told.value)
