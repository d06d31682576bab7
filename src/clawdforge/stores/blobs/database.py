"""Keeps pieces of files in the database itself, which all nodes have anyway."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from clawdforge.core.ports import Store, Tx

AT_ONCE: Final = 1 << 20
"""Bytes in one transaction: others write between two of them."""


class DatabasePlaces:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, app: str, pieces: Mapping[str, bytes]) -> None:
        for some in _group(pieces):

            def work(tx: Tx, some: Mapping[str, bytes] = some) -> None:
                for place, data in some.items():
                    tx.keep_blob_data(place, data)

            await self._store.write_slice(app, work)

    async def get(self, app: str, place: str) -> bytes | None:
        return await self._store.read(app, lambda view: view.blob_data(place))

    async def remove(self, app: str, places: Sequence[str]) -> None:
        await self._store.write(app, lambda tx: tx.drop_blob_data(places))


def _group(pieces: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    group: dict[str, bytes] = {}
    size = 0
    for place, data in pieces.items():
        if group and size + len(data) > AT_ONCE:
            yield group
            group, size = {}, 0
        group[place] = data
        size += len(data)
    if group:
        yield group
