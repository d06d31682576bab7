"""Logs: one JSON object per line, with ids and without secrets; lines for people where people read them."""

import json
import logging
import os
import re
import sys
from collections.abc import Iterable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final, TextIO

from clawdforge.log_limit import DROPPED, LineLimit
from clawdforge.wire.base import to_iso
from clawdforge.wire.log_lines import write_for_people

FIELDS: Final = ("request_id", "session_id", "app", "method", "path", "status", "ms", DROPPED)
"""What a line may contain besides its text: passed as `extra` where it is logged."""

ENCODE: Final = json.JSONEncoder(default=str).encode
OLD_FILES: Final = 2
REDACTED: Final = "[redacted]"
TOKEN: Final = re.compile(r"\b(cfa?_)[A-Za-z0-9_-]{6,}")
CREDENTIAL: Final = re.compile(
    r"(?i)\b(authorization\b[\"']?\s*[:=,]\s*(?:b?[\"'])?)(?:(bearer|basic)\s+)?[^\s\"',)]+"
)
BEARER: Final = re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}")


class Redactor:
    """Removes credentials from a text: known secrets, and whatever looks like a credential."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Each pattern is tried only where its first letters are: a short look, and most lines have none."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        small = text.lower()
        if "authorization" in small:
            text = CREDENTIAL.sub(rf"\1{REDACTED}", text)
        if "bearer" in small:
            text = BEARER.sub(rf"\1{REDACTED}", text)
        return TOKEN.sub(rf"\1{REDACTED}", text) if "cf" in text else text


class Lines(logging.Formatter):
    """What a line holds; how it is written is for those below."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def _read(self, record: logging.LogRecord) -> dict[str, object]:
        line: dict[str, object] = {
            "ts": to_iso(int(record.created * 1_000_000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": self._redact(record.getMessage()),
        }
        for name in FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = self._redact(value) if isinstance(value, str) else value
        if record.exc_info:
            line["error"] = self._redact(self.formatException(record.exc_info))
        return line


class JsonLines(Lines):
    def format(self, record: logging.LogRecord) -> str:
        return ENCODE(self._read(record))


class LinesForPeople(Lines):
    def format(self, record: logging.LogRecord) -> str:
        return write_for_people(self._read(record), is_coloured="NO_COLOR" not in os.environ)


def open_file(path: Path, max_bytes: int) -> logging.Handler:
    """A file that is renamed when it is full; raises OSError when it cannot be written."""
    return RotatingFileHandler(path, maxBytes=max_bytes, backupCount=OLD_FILES, encoding="utf-8")


def start(
    level: str,
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
    handler: logging.Handler | None = None,
) -> None:
    """Send everything that this process logs, uvicorn's lines included, through this module."""
    stream = stream or sys.stderr
    form = LinesForPeople if handler is None and stream.isatty() else JsonLines
    handler = handler or logging.StreamHandler(stream)
    handler.setFormatter(form(Redactor(secrets)))
    handler.addFilter(LineLimit())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # what a face asks of us is logged as a request
    logging.captureWarnings(capture=True)
