"""Uploads: taken in piece by piece under limits, given out again, removed.

A file is *unsettled* while its row is being written or removed. A crash in between leaves it so, and the
next start asks the store: with a row it is put in its place, without one it is deleted. So there is never a
row without its file, nor a file that nobody knows of.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from typing import Any, BinaryIO, Protocol

from clawdforge.core.model import Clock, FileRow, new_token
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.file_names import file_name
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import FileNotFound, FileTooLarge, ForgeAPIError, LimitExceeded, Unavailable

ROOM_RETRY_SECS = 60


class Incoming(Protocol):
    """An unsettled file that is being written. StoreUnavailable when the disk does not take it."""

    async def write(self, data: bytes) -> None: ...
    async def seal(self) -> None:
        """All of it is on stable storage when this returns."""
        ...

    async def discard(self) -> None: ...


class Uploads(Protocol):
    """Where the bytes of uploads lie, by app and token."""

    def path(self, app: str, token: str) -> str:
        """Where it lies once it is settled, as its row says it."""
        ...

    async def create(self, app: str, token: str) -> Incoming: ...
    async def settle(self, app: str, token: str, *, keep: bool) -> None:
        """Put an unsettled file in its place, or delete it. Does nothing when there is none."""
        ...

    async def unsettle(self, app: str, token: str) -> None:
        """Take a file out of its place. Does nothing when there is none."""
        ...

    async def unsettled(self, app: str) -> list[str]: ...
    async def open(self, app: str, token: str) -> BinaryIO | None: ...


class FileService:
    def __init__(self, store: Store, clock: Clock, uploads: Uploads, max_file_bytes: int) -> None:
        self._store = store
        self._clock = clock
        self._uploads = uploads
        self._max_bytes = max_file_bytes
        self._coming: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, app: str, name: str, pieces: AsyncIterator[bytes]) -> FileRow:
        """The file and its row are on stable storage when this returns; else nothing of it is left."""
        token = new_token("ff_")
        size = await self._receive(app, token, pieces)
        row = FileRow(
            file_token=token,
            app_name=app,
            name=file_name(name),
            size=size,
            path=self._uploads.path(app, token),
            created_at=self._clock.now(),
        )
        await self._whole(self._record(row))
        return row

    async def open(self, app: str, token: str) -> tuple[FileRow, BinaryIO]:
        row = await self._need(app, token)
        file = await self._uploads.open(app, token)
        if file is None:
            raise FileNotFound
        return row, file

    async def remove(self, app: str, token: str) -> None:
        """Sessions that were given the file keep their copy."""
        await self._need(app, token)
        await self._whole(self._remove(app, token))

    async def remove_old(self, before: Micros, limit: int = 100) -> int:
        """Uploads made before then that no open session's turn names; how many went."""
        rows = await self._store.read_system(lambda view: view.old_files(before, limit))
        removed = 0
        for row in rows:
            try:
                await self.remove(row.app_name, row.file_token)
            except FileNotFound:
                continue
            removed += 1
        return removed

    async def settle_all(self) -> int:
        """At the start: finish what a crash left unsettled; how many files that were."""
        apps = await self._store.read_system(lambda view: [row.app_name for row in view.apps()])
        count = 0
        for app in apps:
            for token in await self._uploads.unsettled(app):
                await self._settle(app, token)
                count += 1
        return count

    async def _receive(self, app: str, token: str, pieces: AsyncIterator[bytes]) -> int:
        """The number of bytes; each is counted before it is written."""
        room = await self._store.read(app, _room)
        if room is not None and room <= 0:
            raise _no_room()
        incoming, size = await self._uploads.create(app, token), 0
        try:
            async for data in pieces:
                size += len(data)
                self._coming[app] += len(data)
                self._check(app, size, room)
                await incoming.write(data)
            await incoming.seal()
        except BaseException:
            await incoming.discard()
            raise
        finally:
            self._coming[app] -= size
            if not self._coming[app]:
                del self._coming[app]
        return size

    def _check(self, app: str, size: int, room: int | None) -> None:
        if size > self._max_bytes:
            raise FileTooLarge
        if room is not None and self._coming[app] > room:
            raise _no_room()

    async def _record(self, row: FileRow) -> None:
        def work(tx: Tx) -> None:
            room = _room(tx)
            if room is not None and row.size > room:
                raise _no_room()
            tx.add_file(row)

        try:
            await self._store.write(row.app_name, work)
        except ForgeAPIError:
            await self._settle(row.app_name, row.file_token)
            raise
        await self._uploads.settle(row.app_name, row.file_token, keep=True)

    async def _remove(self, app: str, token: str) -> None:
        def work(tx: Tx) -> None:
            if tx.file(token) is None:
                raise FileNotFound
            tx.remove_file(token)

        await self._uploads.unsettle(app, token)
        try:
            await self._store.write(app, work)
        except ForgeAPIError:
            await self._settle(app, token)
            raise
        await self._uploads.settle(app, token, keep=False)

    async def _settle(self, app: str, token: str) -> None:
        """Ask the store what the file is. When it cannot say, the next start asks again."""
        try:
            row = await self._store.read(app, lambda view: view.file(token))
        except Unavailable:
            return
        await self._uploads.settle(app, token, keep=row is not None)

    async def _need(self, app: str, token: str) -> FileRow:
        row = await self._store.read(app, lambda view: view.file(token))
        if row is None:
            raise FileNotFound
        return row

    async def _whole(self, work: Coroutine[Any, Any, None]) -> None:
        """A caller that hangs up leaves nothing half done."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)


def _room(view: View) -> int | None:
    """How many bytes the app may still store; None when nobody counts."""
    app = view.app_row()
    return None if app is None or app.max_bytes is None else app.max_bytes - view.bytes_stored()


def _no_room() -> LimitExceeded:
    return LimitExceeded(
        "this app may store no more bytes; delete files it no longer needs", retry_after=ROOM_RETRY_SECS
    )
