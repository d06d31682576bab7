"""Waiting that blocks the thread; `_async_waits` has the same for a loop."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

T = TypeVar("T")


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def run(work: Callable[[], str]) -> str:
    return work()


def settle(value: T) -> T:
    """What a caller's own function answered."""
    return value


def open_file(path: Path, mode: str) -> BinaryIO:
    return path.open(mode)  # type: ignore[return-value]


def write(file: BinaryIO, data: bytes) -> int:
    return file.write(data)
