"""Puts pieces of files where every node can get them, and gets them back: by digest, checked when read."""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.blobs import BlobRow, BlobState
from clawdforge.core.ports import Store, Tx
from clawdforge.core.ports.blobs import BlobPlaces
from clawdforge.core.ports.shared_files import Piece, TreeReading, TreeWriting
from clawdforge.wire.base import Micros

T = TypeVar("T")
MOST_REMOVED: Final = 100


class LostPiece(Exception):
    """A piece is not there any more, or is not what was put there. The message names it."""


@dataclass(frozen=True, slots=True)
class PieceBox:
    store: Store
    clock: Clock
    places: BlobPlaces

    async def send(self, app: str, pieces: Sequence[Piece]) -> None:
        """They are on stable storage when this returns, each of them once."""
        given = {piece.digest: piece.data for piece in pieces}
        there = await self.store.read(app, lambda view: view.find_blobs(list(given)))
        now = self.clock.now()
        rows = [
            BlobRow(
                place=new_id(),
                app_name=app,
                digest=digest,
                size=len(data),
                state=BlobState.PENDING,
                touched_at=now,
            )
            for digest, data in given.items()
            if digest not in there
        ]
        if rows:
            await self.store.write(app, lambda tx: tx.add_blobs(rows))
            await self.places.put(app, {row.place: given[row.digest] for row in rows})
            await self.store.write(app, lambda tx: tx.mark_stored([row.place for row in rows]))

    async def send_tree(self, app: str, reading: TreeReading) -> None:
        """All of a tree. Raises what its reading does."""
        while pieces := await to_end(reading.read):
            await self.send(app, pieces)

    async def get(self, app: str, digests: Iterable[str]) -> Mapping[str, bytes]:
        wanted = list(dict.fromkeys(digests))
        there = await self.store.read(app, lambda view: view.find_blobs(wanted))
        found: dict[str, bytes] = {}
        for digest in wanted:
            data = await self.places.get(app, there[digest]) if digest in there else None
            if data is None or not await asyncio.to_thread(_is_whole, digest, data):
                raise LostPiece(f"the piece {digest[:12]} is {'damaged' if data else 'not there any more'}")
            found[digest] = data
        return found

    async def get_whole(self, app: str, digests: Sequence[str]) -> bytes:
        found = await self.get(app, digests)
        return b"".join(found[digest] for digest in digests)

    async def get_tree(
        self, app: str, manifest: Sequence[str], begin: Callable[[bytes], TreeWriting]
    ) -> TreeWriting:
        """A tree whose pieces are all written. Raises LostPiece, and what its writing does."""
        described = await self.get_whole(app, manifest)
        writing = await to_end(lambda: begin(described))
        try:
            while wanted := writing.find_wanted():
                pieces = await self.get(app, wanted)
                await to_end(lambda pieces=pieces: writing.give(pieces))  # type: ignore[misc]
        except BaseException:
            await to_end(writing.close)
            raise
        return writing

    async def remove_unused(self, before: Micros) -> bool:
        """Remove pieces that nobody has used since then. A crash leaves them to whoever comes next."""
        while found := await self.store.write_system(lambda tx: tx.doom_blobs(before, MOST_REMOVED)):
            by_app: dict[str, list[str]] = {}
            for row in found:
                by_app.setdefault(row.app_name, []).append(row.place)
            for app, places in by_app.items():
                await self.places.remove(app, places)
            gone = [row.place for row in found]
            await self.store.write_system(lambda tx, gone=gone: tx.forget_blobs(gone))  # type: ignore[misc]
        return True


async def to_end(work: Callable[[], T]) -> T:
    """In a thread, which has ended when this returns: nobody closes what another thread is at."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # marks it as seen; the cancel is what counts
        raise


def _is_whole(digest: str, data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == digest


def use_all(tx: Tx, owner: str, digests: Collection[str], at: Micros) -> bool:
    """The owner uses these pieces, wherever they lie. False if one of them is not stored."""
    if not digests:
        return True
    there = tx.find_blobs(list(digests))
    return len(there) == len(set(digests)) and tx.use_blobs(owner, list(there.values()), at)
