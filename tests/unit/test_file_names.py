"""What becomes of the names that strangers give to files."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clawdforge.core.rules.file_names import MAX_BYTES, UNNAMED, find_mark, mark_file_name, safe_file_name


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\notes.txt", "notes.txt"),
        ("/", UNNAMED),
        ("", UNNAMED),
        ("..", UNNAMED),
        ("a\x00b\r\nc.txt", "abc.txt"),
        ("evil\u202etxt.exe", "eviltxt.exe"),
        ("a\u2028b\u2066c", "abc"),
        ("e\u0301.txt", "\u00e9.txt"),
        ("  spaced   out .txt ", "spaced out .txt"),
        (".env", ".env"),
        ("\U0001f468\u200d\U0001f469.png", "\U0001f468\u200d\U0001f469.png"),
        ("x" * 300 + ".json", "x" * 250 + ".json"),
        ("\u00e9" * 200, "\u00e9" * 127),
    ],
)
def test_a_name_is_made_safe(name: str, kept: str) -> None:
    assert safe_file_name(name) == kept


@given(st.text(max_size=600))
def test_any_name_becomes_one_that_a_file_can_have(name: str) -> None:
    kept = safe_file_name(name)
    assert 0 < len(kept.encode()) <= MAX_BYTES
    assert kept not in (".", "..")
    assert "/" not in kept
    assert "\\" not in kept
    assert not {unicodedata.category(char) for char in kept} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(kept) & set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert kept == unicodedata.normalize("NFC", kept)
    assert safe_file_name(kept) == kept


TOKENS = st.text("ABYZabyz0189-_", min_size=43, max_size=43).map("ff_{}".format)


@given(st.text(max_size=300), TOKENS)
@example("a-ff_12345678.txt", "ff_" + "x" * 43)
@example("a.-ff_12345678", "ff_" + "-" * 43)
@example("x" * 300 + ".json", "ff_" + "_" * 43)
@example("no ending." + "y" * 40, "ff_" + "a" * 43)
def test_a_marked_name_tells_how_its_token_begins(name: str, token: str) -> None:
    marked = mark_file_name(name, token)
    assert len(marked.encode()) <= MAX_BYTES
    assert "/" not in marked
    assert find_mark(marked) == token[:11]


@pytest.mark.parametrize("name", ["", "a.txt", "ff_12345678.txt", "a-ff_1234567.txt", "a-ff_12345678.tar.gz"])
def test_a_name_without_a_mark_tells_nothing(name: str) -> None:
    assert find_mark(name) is None
