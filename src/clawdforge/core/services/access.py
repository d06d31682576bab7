"""Who may call: makes tokens, looks them up by their hash, revokes them."""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from clawdforge.core.model import SECOND, AppRow, Clock, Principal, TokenRow, new_id, new_token
from clawdforge.core.ports import Store, SystemTx
from clawdforge.wire.admin import CreateToken
from clawdforge.wire.errors import InvalidRequest, TokenNotFound, Unauthenticated

LOCAL_APP = "local"
LOGIN_SECS = 30 * 86_400


def hash_token(token: str) -> bytes:
    """The hash that is stored instead of a token. 256 random bits need no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class AccessService:
    """Resolves credentials to principals. Nothing is cached, so a revoked token stops working at once."""

    def __init__(self, store: Store, clock: Clock, admin_token: str) -> None:
        self._store = store
        self._clock = clock
        self._admin = hash_token(admin_token)
        self._login_key = hash_token(f"login:{admin_token}")
        self._watched: dict[str, set[asyncio.Event]] = {}

    async def authenticate(self, token: str) -> Principal:
        presented = hash_token(token)
        if hmac.compare_digest(presented, self._admin):
            return Principal(app="", admin=True)
        row = await self._store.read_system(lambda view: view.token_by_hash(presented))
        if row is None or not self._is_valid(row):
            raise Unauthenticated
        return Principal(app=row.app_name, token_id=row.token_id)

    async def login(self, token: str) -> str:
        """The value of a browser's cookie: it opens the same app as the token until it expires.

        Browsers send a cookie to every port of a host, so it must not be the token itself.
        """
        principal = await self.authenticate(token)
        if principal.token_id is None:
            raise Unauthenticated
        head = f"{principal.token_id}.{self._clock.now() // SECOND + LOGIN_SECS}.{secrets.token_urlsafe(9)}"
        return f"{head}.{self._sign(head, principal.app)}.{principal.app}"

    async def authenticate_login(self, login: str) -> Principal:
        """The app of a browser that has logged in, as long as its token is valid."""
        parts = login.split(".", 4)
        if len(parts) != 5 or not parts[1].isdecimal():
            raise Unauthenticated
        token_id, expires, _, signature, app = parts
        genuine = hmac.compare_digest(signature.encode(), self._sign(".".join(parts[:3]), app).encode())
        if not genuine or int(expires) * SECOND <= self._clock.now():
            raise Unauthenticated
        row = next((row for row in await self.tokens(app) if row.token_id == token_id), None)
        if row is None or not self._is_valid(row):
            raise Unauthenticated
        return Principal(app=app, token_id=token_id)

    def _sign(self, head: str, app: str) -> str:
        return hmac.new(self._login_key, f"{head}.{app}".encode(), hashlib.sha256).hexdigest()

    async def create_token(self, request: CreateToken) -> tuple[str, TokenRow]:
        """Make a token, and its app if that is new. The token itself is returned only here."""
        check_app_name(request.app_name)
        token, now = new_token("cf_"), self._clock.now()
        expires = request.expires_in_secs
        row = TokenRow(
            token_id=new_id(),
            app_name=request.app_name,
            hash=hash_token(token),
            created_at=now,
            note=request.note,
            expires_at=now + expires * SECOND if expires else None,
        )

        def work(tx: SystemTx) -> None:
            if tx.app_row(request.app_name) is None:
                tx.put_app(AppRow(app_name=request.app_name, created_at=now))
            tx.add_token(row)

        await self._store.write_system(work)
        return token, row

    async def adopt(self, app_name: str, token: str) -> None:
        """Make sure that this token opens this app. So `local` gets the token in the data folder."""
        now = self._clock.now()

        def work(tx: SystemTx) -> None:
            if tx.token_by_hash(hash_token(token)) is not None:
                return
            if tx.app_row(app_name) is None:
                tx.put_app(AppRow(app_name=app_name, created_at=now))
            tx.add_token(
                TokenRow(token_id=new_id(), app_name=app_name, hash=hash_token(token), created_at=now)
            )

        if await self._store.read_system(lambda view: view.token_by_hash(hash_token(token))) is None:
            await self._store.write_system(work)

    async def tokens(self, app_name: str | None = None) -> list[TokenRow]:
        return await self._store.read_system(lambda view: view.tokens(app_name))

    async def revoke(self, token_id: str) -> None:
        """Revoke a token for the next call and for every stream that it opened."""
        now = self._clock.now()
        if not await self._store.write_system(lambda tx: tx.change_token(token_id, revoked_at=now)):
            raise TokenNotFound
        for event in self._watched.get(token_id, ()):
            event.set()

    @contextmanager
    def watch(self, principal: Principal) -> Iterator[asyncio.Event]:
        """An event that is set when the principal's token is revoked while a stream is open."""
        event, token_id = asyncio.Event(), principal.token_id
        if token_id is None:
            yield event
            return
        watchers = self._watched.setdefault(token_id, set())
        watchers.add(event)
        try:
            yield event
        finally:
            watchers.discard(event)
            if not watchers:
                self._watched.pop(token_id, None)

    async def seconds_left(self, principal: Principal) -> float | None:
        """Seconds until the principal's token expires; None when it does not."""
        if principal.token_id is None:
            return None
        rows = await self.tokens(principal.app)
        row = next((row for row in rows if row.token_id == principal.token_id), None)
        if row is None or not self._is_valid(row):
            return 0.0
        return None if row.expires_at is None else (row.expires_at - self._clock.now()) / SECOND

    def _is_valid(self, row: TokenRow) -> bool:
        return row.revoked_at is None and (row.expires_at is None or row.expires_at > self._clock.now())


def check_app_name(name: str) -> None:
    if not all(char.isalnum() or char in "-_." for char in name) or name.startswith("."):
        raise InvalidRequest("app_name may contain only letters, digits, '-', '_' and '.'")
