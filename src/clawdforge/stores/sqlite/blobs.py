"""Which files every node can have: pieces, who uses them, and what is published of each session."""

from collections.abc import Collection, Sequence
from typing import Any

from clawdforge.core.models.blobs import BlobRow, PublicationRow
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.rows import Value, to_json
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.base import Micros


class BlobRows(OwnRows):
    """What one app can ask."""

    def publication(self, session_id: str) -> PublicationRow | None:
        row = self._db.row(self._q.blobs["publication"], {"app": self.app, "session": session_id})
        return None if row is None else self._q.publication.read(row)

    def find_blobs(self, digests: Sequence[str]) -> dict[str, str]:
        rows = self._blob_rows("find_blobs", digests=to_json(list(digests)))
        return {str(digest): str(place) for digest, place in rows}  # one that is used, if there is one

    def blob_data(self, place: str) -> bytes | None:
        return next((bytes(data) for (data,) in self._blob_rows("data", place=place)), None)

    def _blob_rows(self, name: str, /, **params: Value) -> list[tuple[Any, ...]]:
        return self._db.rows(self._q.blobs[name], {"app": self.app, **params})


class BlobChanges(BlobRows):
    """What one app can change."""

    def add_blobs(self, rows: Sequence[BlobRow]) -> None:
        for row in rows:
            self._check_own(row.app_name)
        self._db.run_many(self._q.blob.insert, [self._q.blob.values(row) for row in rows])

    def keep_blob_data(self, place: str, data: bytes) -> None:
        self._change_blobs("keep_data", place=place, data=data)

    def mark_stored(self, places: Sequence[str]) -> None:
        self._change_blobs("mark_stored", places=to_json(list(places)))

    def use_blobs(self, owner: str, places: Collection[str], at: Micros) -> bool:
        wanted = to_json(sorted(set(places)))
        if self._blob_rows("count_stored", places=wanted)[0][0] < len(set(places)):
            return False
        dropped = [str(place) for (place,) in self._blob_rows("drop_uses", owner=owner, places=wanted)]
        self._change_blobs("add_uses", owner=owner, places=wanted)
        self._change_blobs("mark_used", places=wanted)
        if dropped:
            self._change_blobs("mark_unused", places=to_json(dropped), at=at)
        return True

    def drop_blob_data(self, places: Sequence[str]) -> None:
        self._change_blobs("drop_data", places=to_json(list(places)))

    def _change_blobs(self, name: str, /, **params: Value) -> int:
        return self._db.run(self._q.blobs[name], {"app": self.app, **params})


class BlobRemoval:
    """What can be changed for everybody."""

    def __init__(self, db: Statements) -> None:
        self._db = db
        self._q = db.queries

    def doom_blobs(self, before: Micros, limit: int) -> list[BlobRow]:
        rows = self._db.rows(self._q.blobs["unused"], {"before": before, "limit": limit})
        found = [self._q.blob.read(row) for row in rows]
        if found:
            self._db.run(self._q.blobs["doom"], {"places": to_json([row.place for row in found])})
        return found

    def forget_blobs(self, places: Sequence[str]) -> None:
        self._db.run(self._q.blobs["forget"], {"places": to_json(list(places))})
