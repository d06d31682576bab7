"""A file that is being uploaded, and its progress."""

import io
from collections.abc import Callable
from typing import BinaryIO


class Outgoing:
    """Reads through to a file, from its beginning where it can be rewound, and tells what was read."""

    def __init__(self, file: BinaryIO, progress: Callable[[int, int | None], None] | None) -> None:
        self._file = file
        self._progress = progress
        self._sent = 0
        self._size = self._measure()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._sent += len(data)
        if data and self._progress is not None:
            self._progress(self._sent, self._size)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if self._size is None:
            raise io.UnsupportedOperation("this file cannot be rewound")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def _measure(self) -> int | None:
        if not self._file.seekable():
            return None
        size = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        return size
