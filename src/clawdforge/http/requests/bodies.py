"""Reads whole bodies into memory, within what one body may hold, one app, and all of them together."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Self

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from clawdforge.http.head import head_of
from clawdforge.wire.errors import BodyTooLarge, ForgeAPIError, LimitExceeded, ServerBusy

FREE_BYTES: Final = 64 * 1024
"""So much of each body is not counted: a small request never waits for room that large ones take."""

OPEN_BYTES: Final = 4096
"""The largest body of somebody who has shown no credential."""

RETRY_SECS: Final = 5


class BodyBudget:
    """The memory for all bodies that are being read or worked on. One app gets at most half of it."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._share = total // 2
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> int:
        return self._held.total()

    def claim(self, app: str) -> "Claim":
        """What a body takes of the budget until this is left."""
        return Claim(self, app)

    def give_back(self, app: str, size: int) -> None:
        self._held[app] -= size
        if not self._held[app]:
            del self._held[app]

    def take(self, app: str, size: int) -> None:
        if self._held[app] + size > self._share:
            raise LimitExceeded(
                "this app has too many large bodies on their way; try again when some are done",
                retry_after=RETRY_SECS,
            )
        if self.held + size > self._total:
            raise ServerBusy(
                "there is no memory for another large body; try again later, or have the operator raise"
                " CLAWDFORGE_MAX_BODIES_BYTES",
                retry_after=RETRY_SECS,
            )
        self._held[app] += size


class Claim:
    """The part of the budget that one body has taken."""

    def __init__(self, budget: BodyBudget, app: str) -> None:
        self._budget = budget
        self._app = app
        self._size = 0
        self._counted = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._counted:
            self._budget.give_back(self._app, self._counted)

    def add(self, size: int) -> None:
        self._size += size
        more = self._size - FREE_BYTES - self._counted
        if more > 0:
            self._budget.take(self._app, more)
            self._counted += more


def limit_body(request: Request, most: int, refusal: type[ForgeAPIError]) -> Receive:
    """Counts a body while it is read, whatever Content-Length says."""
    receive, seen = request.receive, 0
    declared = head_of(request.scope).first(b"content-length") or b"0"
    is_too_large = declared.isdigit() and int(declared) > most

    async def receive_counted() -> Message:
        nonlocal seen
        if is_too_large:
            raise refusal
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise refusal
        return message

    return receive_counted


async def read_body(
    request: Request, claim: Claim, turn: Callable[[], Awaitable[None]], *, is_open: bool
) -> bytes:
    """The whole body; `is_open` when nobody knows who sends it. A large one waits for its turns."""
    pieces: list[bytes] = []
    size = 0
    if is_open:
        declared = head_of(request.scope).first(b"content-length") or b"0"
        _check_open(int(declared) if declared.isdigit() else 0)
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        if is_open:
            _check_open(size)
        claim.add(len(piece))
        pieces.append(piece)
        if piece and size > FREE_BYTES:
            await turn()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _check_open(size: int) -> None:
    if size > OPEN_BYTES:
        raise BodyTooLarge(f"a request without a credential may have a body of {OPEN_BYTES:,} bytes")
