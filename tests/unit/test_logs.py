"""Log lines are JSON, carry their ids, and hold no credential whatever it is wrapped in."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from clawdforge.logs import JsonLines, Redactor, start

APP = "cf_Zx0-aB_9cdefghijklmnopqrstuvwxyz0123456789AB"
OPERATOR = "cfa_Zx0-aB_9cdefghijklmnopqrstuvwxyz0123456789A"
CHOSEN = "an operator's own words"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the process logs, as it would be on stderr; afterwards all is as before."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = list(root.handlers), root.level
    start("info", [CHOSEN], stream)
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


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
