"""Uploads that another node received: sent in pieces as they arrive, and brought here when they are used."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from typing import BinaryIO, Final

from clawdforge.core.ids import new_token
from clawdforge.core.models.rows import FileRow
from clawdforge.core.ports.shared_files import Piece
from clawdforge.core.ports.uploads import Uploads
from clawdforge.core.running.piece_box import LostPiece, PieceBox
from clawdforge.wire.errors import UnknownFile

PIECE_BYTES: Final = 1 << 20


class Sending:
    """A file on its way to where all nodes can get it; without a box, it goes nowhere."""

    def __init__(self, app: str, box: PieceBox | None) -> None:
        self._app = app
        self._box = box
        self._rest = bytearray()
        self._digests: list[str] = []

    async def write(self, data: bytes) -> None:
        if self._box is None:
            return
        self._rest += data
        while len(self._rest) >= PIECE_BYTES:
            await self._send(bytes(self._rest[:PIECE_BYTES]))
            del self._rest[:PIECE_BYTES]

    async def end(self) -> tuple[str, ...]:
        """What it consists of, when all of it is on stable storage."""
        if self._rest:
            await self._send(bytes(self._rest))
        return tuple(self._digests)

    async def _send(self, data: bytes) -> None:
        if self._box is not None:
            digest = await asyncio.to_thread(lambda: sha256(data).hexdigest())
            await self._box.send(self._app, [Piece(digest, data)])
            self._digests.append(digest)


class CarriedUploads:
    def __init__(self, uploads: Uploads, box: PieceBox | None) -> None:
        self._uploads = uploads
        self._box = box

    def send(self, app: str) -> Sending:
        return Sending(app, self._box)

    async def open(self, row: FileRow) -> BinaryIO | None:
        """A file that is not here; None if it is nowhere."""
        if self._box is None or not row.pieces:
            return None
        token = await self._fetch(row, self._box)
        try:
            return await self._uploads.open_pending(row.app_name, token)
        finally:
            await self._uploads.delete_pending(row.app_name, token)  # whoever has it open can read it

    @asynccontextmanager
    async def bring(self, rows: Sequence[FileRow]) -> AsyncIterator[list[FileRow]]:
        """The files with their paths on this node; those of others are here as long as the block lasts."""
        if self._box is None:
            yield list(rows)
            return
        found: list[FileRow] = []
        fetched: list[tuple[str, str]] = []
        try:
            for row in rows:
                path = self._uploads.path(row.app_name, row.file_token)
                if row.pieces and not await self._is_here(row):
                    token = await self._fetch(row, self._box)
                    fetched.append((row.app_name, token))
                    path = self._uploads.pending_path(row.app_name, token)
                found.append(replace(row, path=path))
            yield found
        finally:
            for app, token in fetched:
                await self._uploads.delete_pending(app, token)

    async def _is_here(self, row: FileRow) -> bool:
        file = await self._uploads.open(row.app_name, row.file_token)
        if file is None:
            return False
        await asyncio.to_thread(file.close)
        return True

    async def _fetch(self, row: FileRow, box: PieceBox) -> str:
        """Into a file that has no row: one that a crash leaves is deleted by the next start."""
        token = new_token("tmp_")
        incoming = await self._uploads.create(row.app_name, token)
        try:
            for digest in row.pieces:
                await incoming.write((await box.get(row.app_name, [digest]))[digest])
            await incoming.seal()
        except LostPiece as error:
            await incoming.discard()
            raise UnknownFile(f"{row.name} cannot be had any more ({error}); upload it again") from error
        except BaseException:
            await incoming.discard()
            raise
        return token
