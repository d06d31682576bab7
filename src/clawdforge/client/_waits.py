"""Waiting that blocks the thread; `_async_waits` has the same for a loop."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

T = TypeVar("T")
Lock = threading.Lock
FINDS_AT_ONCE: Final = True
"""A server is found, or started, when a client is made."""


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def run(work: Callable[[], T]) -> T:
    return work()


def resolve(value: T) -> T:
    """What a caller's own function answered."""
    return value


def open_file(path: Path, mode: str) -> BinaryIO:
    return path.open(mode)  # type: ignore[return-value]


def write(file: BinaryIO, data: bytes) -> int:
    return file.write(data)
