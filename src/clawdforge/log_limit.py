"""Keeps one kind of line from filling the log: so many pass in a second, and the others are counted."""

import logging
import threading
from dataclasses import dataclass
from typing import Final

MAX_KINDS: Final = 4096
DROPPED: Final = "dropped"


@dataclass(frozen=True, slots=True)
class Rate:
    per_sec: float
    burst: int


NOTES: Final = Rate(100, 1000)
TROUBLE: Final = Rate(5, 100)
"""For warnings and errors, which may be long."""


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float
    dropped: int = 0


class LineLimit(logging.Filter):
    """Lines are of one kind when the same place in the source wrote them for the same app.

    The next line that passes tells how many of its kind did not.
    """

    def __init__(self, notes: Rate = NOTES, trouble: Rate = TROUBLE) -> None:
        super().__init__()
        self._notes = notes
        self._trouble = trouble
        self._buckets: dict[tuple[str, int, object], _Bucket] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        rate = self._trouble if record.levelno >= logging.WARNING else self._notes
        kind = (record.pathname, record.lineno, getattr(record, "app", None))
        with self._lock:
            if kind not in self._buckets and len(self._buckets) >= MAX_KINDS:
                self._buckets.clear()
            bucket = self._buckets.setdefault(kind, _Bucket(rate.burst, record.created))
            gained = max(0.0, record.created - bucket.at) * rate.per_sec
            bucket.left, bucket.at = min(rate.burst, bucket.left + gained), record.created
            if bucket.left < 1:
                bucket.dropped += 1
                return False
            bucket.left -= 1
            if bucket.dropped:
                setattr(record, DROPPED, bucket.dropped)
                bucket.dropped = 0
        return True
