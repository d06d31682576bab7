"""What core asks of a store that knows which files every node can have, and of where their bytes are."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from clawdforge.core.models.blobs import BlobRow, PublicationRow
from clawdforge.wire.base import Micros


class BlobView(Protocol):
    """For one app."""

    def publication(self, session_id: str) -> PublicationRow | None: ...

    def find_blobs(self, digests: Sequence[str]) -> dict[str, str]:
        """By digest, a place of each piece that is stored."""
        ...

    def blob_data(self, place: str) -> bytes | None:
        """What was kept in the database itself."""
        ...


class BlobTx(BlobView, Protocol):
    def add_blobs(self, rows: Sequence[BlobRow]) -> None:
        """Before anything is put there: whatever lies anywhere has a row that names it."""
        ...

    def keep_blob_data(self, place: str, data: bytes) -> None: ...

    def drop_blob_data(self, places: Sequence[str]) -> None: ...

    def mark_stored(self, places: Sequence[str]) -> None:
        """They are on stable storage now. One that is being removed stays what it is."""
        ...

    def use_blobs(self, owner: str, places: Collection[str], at: Micros) -> bool:
        """The owner, a session or an upload, uses these pieces and no others.

        False, and nothing has changed, if one of them is not stored.
        """
        ...

    def publish(self, row: PublicationRow) -> None:
        """In the place of what was published of the session before."""
        ...


class BlobSystemTx(Protocol):
    """For everybody."""

    def doom_blobs(self, before: Micros, limit: int) -> list[BlobRow]:
        """Pieces that nobody uses and that were made before then, and those that were doomed before."""
        ...

    def forget_blobs(self, places: Sequence[str]) -> None:
        """They are removed."""
        ...


class BlobPlaces(Protocol):
    """Where pieces are put. Everything is an error of the store when it cannot be reached."""

    async def put(self, app: str, pieces: Mapping[str, bytes]) -> None:
        """By place. They are on stable storage when this returns."""
        ...

    async def get(self, app: str, place: str) -> bytes | None: ...

    async def remove(self, app: str, places: Sequence[str]) -> None:
        """Those that are not there are removed already."""
        ...
