"""What may fill the log: lines of one kind are limited, counted, and a file is renamed when it is full."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdforge import logs
from clawdforge.log_limit import LineLimit, Rate


def record(at: float, line: int = 1, app: str | None = None, level: int = logging.INFO) -> logging.LogRecord:
    made = logging.LogRecord("x", level, "file.py", line, "text", None, None)
    made.created = at
    made.app = app
    return made


def test_lines_of_one_kind_are_limited_and_the_next_tells_how_many_were_left_out() -> None:
    limit = LineLimit(notes=Rate(per_sec=1, burst=3))
    assert [limit.filter(record(0.0)) for _ in range(5)] == [True, True, True, False, False]
    assert limit.filter(record(0.0, line=2)), "another place"
    assert limit.filter(record(0.0, app="a")), "another app"
    late = record(1.0)
    assert limit.filter(late)
    assert vars(late)["dropped"] == 2
    assert not limit.filter(record(1.0))
    after = [record(10.0) for _ in range(4)]
    assert [limit.filter(one) for one in after] == [True, True, True, False]
    assert [vars(one).get("dropped") for one in after] == [1, None, None, None]


def test_trouble_has_a_limit_of_its_own() -> None:
    limit = LineLimit(notes=Rate(1, 3), trouble=Rate(1, 1))
    assert [limit.filter(record(0.0, level=logging.WARNING)) for _ in range(2)] == [True, False]


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    found = logging.getLogger()
    handlers, level = found.handlers[:], found.level
    yield found
    for handler in found.handlers:
        if handler not in handlers:
            handler.close()
    found.handlers[:] = handlers
    found.setLevel(level)
    logging.captureWarnings(capture=False)


def test_a_flood_of_one_line_stays_small(root: logging.Logger) -> None:
    stream = io.StringIO()
    logs.start("info", stream=stream)
    for _ in range(5000):
        root.warning("no more descriptors")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert 100 <= len(lines) < 1000
    assert {line["msg"] for line in lines} == {"no more descriptors"}


def test_a_file_is_renamed_when_it_is_full(root: logging.Logger, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    logs.start("info", handler=logs.open_file(path, 2000))
    for number in range(100):
        root.info("line %d", number)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files == ["server.log", "server.log.1", "server.log.2"]
    assert all(file.stat().st_size <= 2000 for file in tmp_path.iterdir())
    assert "line 99" in path.read_text()
