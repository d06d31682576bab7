"""Log lines are JSON, carry their ids, and hold no credential whatever it is wrapped in."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clawdforge.logs import JsonLines, Redactor, start
from clawdforge.wire.log_lines import write_for_people

APP = "cf_Zx0-aB_9cdefghijklmnopqrstuvwxyz0123456789AB"
OPERATOR = "cfa_Zx0-aB_9cdefghijklmnopqrstuvwxyz0123456789A"
CHOSEN = "an operator's own words"


@contextmanager
def logging_to(stream: io.StringIO) -> Iterator[None]:
    """What the process logs goes there, as it would to stderr; afterwards all is as before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    start("info", [CHOSEN], stream)
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    with logging_to(stream := io.StringIO()):
        yield stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    "text",
    [
        f"GET /x?token={APP}",
        f"Authorization: Bearer {APP}",
        f"authorization: basic dXNlcjpzZWNyZXQtcGFzc3dvcmQ= and {OPERATOR}",
        f"{{'Authorization': 'Bearer {OPERATOR}'}}",
        f"[(b'authorization', b'Bearer {APP}')]",
        f"the header was bearer\t{APP}!",
        f"({APP},{OPERATOR})\n{CHOSEN}",
        "Authorization=some-other-scheme-of-the-user",
    ],
)
def test_credentials_are_taken_out(text: str) -> None:
    told = Redactor([CHOSEN])(text)
    for secret in (APP, OPERATOR, APP[10:], CHOSEN, "dXNlcjpzZWNyZXQ", "some-other-scheme"):
        assert secret not in told
    assert "[redacted]" in told


@pytest.mark.parametrize("text", ["", "a session was closed", "cf_ is a prefix", "authorization is required"])
def test_other_words_stay(text: str) -> None:
    assert Redactor(["", CHOSEN])(text) == text


def test_a_line_has_its_ids_and_its_error(written: io.StringIO) -> None:
    log = logging.getLogger("clawdforge.somewhere")
    log.info("hello %s", APP, extra={"session_id": "s1", "app": "a", "request_id": "r1", "ms": 1.5, "odd": 1})
    try:
        int(f"bad {OPERATOR}\nsecond line")
    except ValueError:
        log.exception("it failed")
    log.debug("not told")
    first, second = lines(written)
    assert (first["level"], first["logger"], first["msg"]) == (
        "info",
        "clawdforge.somewhere",
        "hello cf_[redacted]",
    )
    assert (first["session_id"], first["app"], first["request_id"], first["ms"]) == ("s1", "a", "r1", 1.5)
    assert "odd" not in first
    assert first["ts"].endswith("Z")
    assert "second line" in second["error"], "an error tells what it met"
    assert OPERATOR not in written.getvalue()
    assert written.getvalue().count("\n") == 2, "one line each, whatever the text holds"


def test_the_lines_of_uvicorn_come_the_same_way(written: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").info("StartedTurn, token %s", APP)
    logging.getLogger("uvicorn.access").info('"GET /sessions?x=%s"', APP)
    assert [line["logger"] for line in lines(written)] == ["uvicorn.error", "uvicorn.access"]
    assert APP not in written.getvalue()


def test_what_cannot_be_encoded_is_told_all_the_same() -> None:
    record = logging.LogRecord("x", logging.INFO, "f", 1, "half \ud800 pair %s", ("\u2028",), None)
    record.session_id = "\ud800"
    assert "\n" not in JsonLines(Redactor()).format(record)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    """What a person sees who has started the server on a terminal."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TZ", "UTC")
    with logging_to(stream := Screen()):
        yield stream


def test_on_a_terminal_lines_are_for_people(seen: Screen) -> None:
    log = logging.getLogger("clawdforge.somewhere")
    of = {"session_id": "0123456789", "app": "shop", "request_id": "r1", "ms": 12.34}
    log.info("GET /sessions 200", extra=of)
    log.warning("no room for %s", CHOSEN, extra=of)
    logging.getLogger("uvicorn.error").info("Shutting down")
    logging.getLogger("asyncio").info("hello")
    rows = [row[10:] for row in seen.getvalue().splitlines()]
    assert rows == [
        "GET /sessions 200  12 ms  shop  session 01234567",
        "WARNING no room for [redacted]  12 ms  shop  session 01234567  request r1",
        "Shutting down",
        "asyncio: hello",
    ]
    assert re.match(r"\d\d:\d\d:\d\d  GET", seen.getvalue())


def test_an_error_is_told_below_its_line(seen: Screen) -> None:
    try:
        int("bad")
    except ValueError:
        logging.getLogger("clawdforge").exception("it failed")
    first, *more = seen.getvalue().splitlines()
    assert first.endswith("ERROR it failed")
    assert more[-1] == "    ValueError: invalid literal for int() with base 10: 'bad'"


def test_nothing_that_is_logged_steers_the_terminal(seen: Screen) -> None:
    logging.getLogger("clawdforge").warning("\x1b[2J\u202eoh\nno", extra={"app": "\x07bell"})
    assert seen.getvalue()[10:] == "WARNING \\x1b[2J\\u202eoh\\nno  \\x07bell\n"


def test_levels_have_colours() -> None:
    shown = write_for_people({"level": "error", "msg": "x", "ms": 1}, is_coloured=True)
    assert shown == "\x1b[31mERROR\x1b[0m x  \x1b[2m1 ms\x1b[0m"
