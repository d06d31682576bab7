"""Waiting that blocks the thread; `_async_waits` has the same for a loop."""

import time
from pathlib import Path
from typing import BinaryIO


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def open_file(path: Path, mode: str) -> BinaryIO:
    return path.open(mode)  # type: ignore[return-value]


def write(file: BinaryIO, data: bytes) -> int:
    return file.write(data)
