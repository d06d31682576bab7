"""Keeps pieces of files in a folder that all nodes have mounted."""

import asyncio
import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from clawdforge.disk import sync_folder
from clawdforge.wire.errors import StoreUnavailable

CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class FolderPlaces:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lasting: set[Path] = set()  # folders of apps that a loss of power leaves where they are

    async def put(self, app: str, pieces: Mapping[str, bytes]) -> None:
        await self._do(lambda: self._put(app, pieces))

    async def get(self, app: str, place: str) -> bytes | None:
        found: list[bytes] = []

        def read() -> None:
            with contextlib.suppress(FileNotFoundError):
                found.append((self._of(app) / place).read_bytes())

        await self._do(read)
        return found[0] if found else None

    async def remove(self, app: str, places: Sequence[str]) -> None:
        def remove() -> None:
            for place in places:
                (self._of(app) / place).unlink(missing_ok=True)

        await self._do(remove)

    async def _do(self, work: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(work)
        except OSError as error:
            is_full = error.errno in FULL
            advice = "make room there" if is_full else "mount it, and see that this server may write there"
            raise StoreUnavailable(
                f"the folder of CLAWDFORGE_BLOBS cannot be used ({error.strerror}: {self._folder}); {advice}",
                retry_after=10.0,
            ) from error

    def _put(self, app: str, pieces: Mapping[str, bytes]) -> None:
        """A file of which only a part is written has no row that counts."""
        folder = self._of(app)
        self._make(folder)
        for place, data in pieces.items():
            with os.fdopen(os.open(folder / place, CREATE, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        sync_folder(folder)

    def _make(self, folder: Path) -> None:
        """Synced once by every server: whoever made it may not have come to that."""
        if folder in self._lasting and folder.is_dir():
            return
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            sync_folder(self._folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
        sync_folder(self._folder)
        self._lasting.add(folder)

    def _of(self, app: str) -> Path:
        return self._folder / hashlib.sha256(app.encode()).hexdigest()[:32]
