"""What core asks of the place where the bytes of uploads are stored."""

from typing import BinaryIO, Protocol


class Incoming(Protocol):
    """A pending file that is being written. Raises StoreUnavailable when the disk fails or is full."""

    async def write(self, data: bytes) -> None: ...
    async def seal(self) -> None:
        """All of it is on stable storage when this returns."""
        ...

    async def discard(self) -> None: ...


class Uploads(Protocol):
    """Where the bytes of uploads are stored, by app and token."""

    def path(self, app: str, token: str) -> str:
        """Where the file is once it is in place; this stands in its row."""
        ...

    async def create(self, app: str, token: str) -> Incoming: ...
    async def put_in_place(self, app: str, token: str) -> None:
        """The pending file becomes a stored one. Does nothing when there is none."""
        ...

    async def take_out(self, app: str, token: str) -> None:
        """The stored file becomes a pending one. Does nothing when there is none."""
        ...

    async def delete_pending(self, app: str, token: str) -> None:
        """Does nothing when there is none."""
        ...

    async def list_pending(self, app: str) -> list[str]: ...
    async def open(self, app: str, token: str) -> BinaryIO | None: ...
    async def open_pending(self, app: str, token: str) -> BinaryIO | None: ...
    def pending_path(self, app: str, token: str) -> str: ...
