"""Uploads: received piece by piece within limits, read again, removed.

A file is *pending* while its row is being written or removed. A crash leaves it pending, and the next start
asks the store: a file with a row is put in place, one without is deleted. So there is never a row without
its file, nor a file without its row.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_token
from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.models.rows import FileRow
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.ports.uploads import Uploads
from clawdforge.core.rules.file_names import find_mark, mark_file_name, safe_file_name
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.running.carried_uploads import CarriedUploads
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.piece_box import use_all
from clawdforge.core.unbroken import Unbroken
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import (
    FileNotFound,
    FileTooLarge,
    ForgeAPIError,
    StoreUnavailable,
    Unavailable,
    UnknownFile,
)

SHOWN_CHARS: Final = 100


class FileService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        uploads: Uploads,
        carried: CarriedUploads,
        max_file_bytes: int,
        quotas: Quotas = NO_QUOTAS,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._uploads = uploads
        self._carried = carried
        self._elsewhere = elsewhere
        self._max_bytes = max_file_bytes
        self._quotas = quotas
        self._arriving: Counter[str] = Counter()
        self._unbroken = Unbroken()

    async def add(
        self, app: str, name: str, pieces: AsyncIterator[bytes], *, marked: bool = False
    ) -> FileRow:
        """The file and its row are on stable storage when this returns; if it fails, nothing is left.

        A `marked` file gets a name that no other has, for callers who know it by nothing else.
        """
        token = new_token("ff_")
        size, digests = await self._receive(app, token, pieces)
        row = FileRow(
            file_token=token,
            app_name=app,
            name=mark_file_name(name, token) if marked else safe_file_name(name),
            size=size,
            path=self._uploads.path(app, token),
            created_at=self._clock.now(),
            pieces=digests,
        )
        await self._unbroken.run(self._record(row))
        return row

    async def open(self, app: str, token: str) -> tuple[FileRow, BinaryIO]:
        row = await self._need_file(app, token)
        file = await self._uploads.open(app, token) or await self._carried.open(row)
        if file is None:
            raise FileNotFound
        return row, file

    async def find_marked(self, app: str, name: str) -> str:
        """The token of a file that was stored with a name of its own."""
        mark = find_mark(name)
        row = await self._store.read(app, lambda view: view.file_beginning(mark)) if mark else None
        if row is None or row.name != name:
            raise UnknownFile(f"no file of this name was uploaded, or it is gone: {name[:SHOWN_CHARS]}")
        return row.file_token

    async def remove(self, app: str, token: str) -> None:
        """Sessions that use the file keep their own copy."""
        await self._need_file(app, token)
        await self._unbroken.run(self._remove(app, token))

    async def remove_old(self, before: Micros, limit: int = 100) -> int:
        """Remove uploads made before then that no open session uses. Returns how many."""
        rows = await self._store.read_system(lambda view: view.old_files(before, limit))
        removed = 0
        for row in rows:
            try:
                await self.remove(row.app_name, row.file_token)
            except FileNotFound:
                continue
            removed += 1
        return removed

    async def finish_pending(self) -> int:
        """At the server's start: finish what a crash left pending. Returns how many files there were."""
        apps = await self._store.read_system(lambda view: [row.app_name for row in view.apps()])
        count = 0
        for app in apps:
            for token in await self._uploads.list_pending(app):
                await self._finish(app, token)
                count += 1
        return count

    async def _receive(
        self, app: str, token: str, pieces: AsyncIterator[bytes]
    ) -> tuple[int, tuple[str, ...]]:
        """Write the pieces to a pending file and return its size, and what other nodes know it by.

        Bytes are counted before they are written.
        """
        bytes_left = await self._store.read(app, self._look)
        incoming, size = await self._uploads.create(app, token), 0
        sending = self._carried.send(app)
        try:
            async for data in pieces:
                size += len(data)
                self._arriving[app] += len(data)
                await self._check_size(app, size, bytes_left)
                await incoming.write(data)
                await sending.write(data)
            await incoming.seal()
            digests = await sending.end()
        except BaseException:
            await incoming.discard()
            raise
        finally:
            self._arriving[app] -= size
            if not self._arriving[app]:
                del self._arriving[app]
        return size, digests

    def _look(self, view: View) -> int | None:
        """How many bytes the app may still store; refused when there is no room for one."""
        self._quotas.check_room(view)
        return self._quotas.room(view)

    async def _check_size(self, app: str, size: int, bytes_left: int | None) -> None:
        if size > self._max_bytes:
            raise FileTooLarge
        arriving = self._arriving[app]
        if bytes_left is not None and arriving > bytes_left:  # when the file began: it may be more by now
            await self._store.read(app, lambda view: self._quotas.check_room(view, arriving))

    async def _record(self, row: FileRow) -> None:
        def work(tx: Tx) -> None:
            self._quotas.check_room(tx, row.size)
            tx.add_file(row)
            if not use_all(tx, row.file_token, row.pieces, row.created_at):
                raise StoreUnavailable("parts of the file are gone; send it again", retry_after=1.0)

        try:
            await self._store.write(row.app_name, work)
        except ForgeAPIError:
            await self._finish(row.app_name, row.file_token)
            raise
        await self._uploads.put_in_place(row.app_name, row.file_token)

    async def _remove(self, app: str, token: str) -> None:
        def work(tx: Tx) -> None:
            if tx.file(token) is None:
                raise FileNotFound
            tx.remove_file(token)

        await self._uploads.take_out(app, token)
        try:
            await self._store.write(app, work)
        except ForgeAPIError:
            await self._finish(app, token)
            raise
        await self._uploads.delete_pending(app, token)
        if self._elsewhere is not None:
            await self._elsewhere.ask_all(WishKind.REMOVE_UPLOAD, app, token)

    async def remove_here(self, wish: WishRow) -> None:
        """Another node has removed an upload: the file of it goes that came to this one."""
        app, token = wish.app_name, wish.session_id
        if await self._store.read(app, lambda view: view.file(token)) is None:
            await self._uploads.take_out(app, token)
            await self._uploads.delete_pending(app, token)

    async def _finish(self, app: str, token: str) -> None:
        """Keep a pending file if it has a row. When the store cannot say, the next start asks again."""
        try:
            row = await self._store.read(app, lambda view: view.file(token))
        except Unavailable:
            return
        if row is None:
            await self._uploads.delete_pending(app, token)
        else:
            await self._uploads.put_in_place(app, token)

    async def _need_file(self, app: str, token: str) -> FileRow:
        row = await self._store.read(app, lambda view: view.file(token))
        if row is None:
            raise FileNotFound
        return row
