"""Codes that are good for one login: in memory, or in the store where several nodes share it."""

from dataclasses import dataclass
from typing import Final, Protocol

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.nodes import CodeRow
from clawdforge.core.ports import Store, SystemTx
from clawdforge.wire.base import Micros

CODE_SECS: Final = 60
MOST_CODES: Final = 16
"""So many codes of one token may wait to be used; a further one takes the place of the oldest."""


@dataclass(frozen=True, slots=True)
class Code:
    app: str
    token_id: str


class LoginCodes(Protocol):
    """By the hashes of codes."""

    async def add(self, digest: bytes, code: Code) -> None: ...
    async def find(self, digest: bytes) -> Code | None:
        """None when it was used, or its minute is over."""
        ...

    async def take(self, digest: bytes) -> Code | None:
        """Likewise; nobody else gets it then."""
        ...

    async def forget(self, token_id: str) -> None: ...


def open_codes(store: Store, clock: Clock) -> LoginCodes:
    return CodesInMemory(clock) if store.peers is None else CodesInStore(store, clock)


class CodesInMemory:
    """None outlives its minute, by the clock that nobody can set, or the server."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: dict[bytes, tuple[Code, Micros]] = {}  # the oldest first

    async def add(self, digest: bytes, code: Code) -> None:
        now = self._clock.steady()
        self._codes = {key: one for key, one in self._codes.items() if one[1] > now}
        mine = [key for key, (one, _) in self._codes.items() if one.token_id == code.token_id]
        for key in mine[: max(0, len(mine) - MOST_CODES + 1)]:
            del self._codes[key]
        self._codes[digest] = code, now + CODE_SECS * SECOND

    async def find(self, digest: bytes) -> Code | None:
        code, ends_at = self._codes.get(digest, (None, 0))
        return code if ends_at > self._clock.steady() else None

    async def take(self, digest: bytes) -> Code | None:
        found = await self.find(digest)
        self._codes.pop(digest, None)
        return found

    async def forget(self, token_id: str) -> None:
        self._codes = {key: one for key, one in self._codes.items() if one[0].token_id != token_id}


class CodesInStore:
    """A browser may come to another node than the one that made its code."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def add(self, digest: bytes, code: Code) -> None:
        now = self._clock.now()
        ends_at = now + CODE_SECS * SECOND
        row = CodeRow(hash=digest, app_name=code.app, token_id=code.token_id, ends_at=ends_at)

        def work(tx: SystemTx) -> None:
            tx.forget_login_codes(now)
            mine = tx.login_codes_of(code.token_id)
            for old in mine[: max(0, len(mine) - MOST_CODES + 1)]:
                tx.take_login_code(old)
            tx.add_login_code(row)

        await self._store.write_system(work)

    async def find(self, digest: bytes) -> Code | None:
        return self._judge(await self._store.read_system(lambda view: view.login_code(digest)))

    async def take(self, digest: bytes) -> Code | None:
        return self._judge(await self._store.write_system(lambda tx: tx.take_login_code(digest)))

    async def forget(self, token_id: str) -> None:
        def work(tx: SystemTx) -> None:
            for digest in tx.login_codes_of(token_id):
                tx.take_login_code(digest)

        await self._store.write_system(work)

    def _judge(self, row: CodeRow | None) -> Code | None:
        is_good = row is not None and row.ends_at > self._clock.now()
        return Code(row.app_name, row.token_id) if row is not None and is_good else None
