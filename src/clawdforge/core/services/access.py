"""Who may call: makes tokens, looks them up by their hash, revokes them."""

import asyncio
import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.ids import new_id, new_token
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import AppRow, TokenRow
from clawdforge.core.ports import Store, SystemTx
from clawdforge.core.services.known_tokens import KnownTokens
from clawdforge.core.services.token_uses import TokenUses
from clawdforge.core.unbroken import Unbroken
from clawdforge.wire.admin import CreateOwnToken, CreateToken
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import Forbidden, InvalidRequest, StoreUnavailable, TokenNotFound, Unauthenticated
from clawdforge.wire.scopes import Scope

LOCAL_APP = "local"
CHECK_SECS = 1.0
CALLBACK_SCOPES = frozenset({Scope.READ, Scope.PROMPT})


def hash_token(token: str) -> bytes:
    """The hash that is stored instead of a token. 256 random bits need no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class AccessService:
    """Resolves credentials to principals. A revoked token stops working at once (`known_tokens.py`)."""

    def __init__(self, store: Store, clock: Clock, admin_token: str, callbacks: CallbackTokens) -> None:
        self._store = store
        self._clock = clock
        self._admin = hash_token(admin_token)
        self._callbacks = callbacks
        self._watched: dict[str, set[asyncio.Event]] = {}
        self._principals: dict[asyncio.Event, Principal] = {}
        self._checking: asyncio.Task[None] | None = None
        self._check_again = False
        if store.peers is not None:
            store.peers.heed(self._hear)
        self.uses = TokenUses(store, clock)
        self._known = KnownTokens(clock, is_alone=store.peers is None)
        self._unbroken = Unbroken()

    async def authenticate(self, token: str) -> Principal:
        presented = hash_token(token)
        if hmac.compare_digest(presented, self._admin):
            return Principal(app="", admin=True)
        agent = self._callbacks.read(token)
        if agent is not None:
            return await self._admit_agent(*agent)
        row = self._known.find(presented)
        if row is None:
            known_from = self._known.round
            row = await self._store.read_system(lambda view: view.token_by_hash(presented))
            if row is None:
                raise Unauthenticated
            self._known.keep(row, known_from)
        if not self._is_valid(row):
            raise Unauthenticated
        return self._admit(row)

    async def admit(self, app: str, token_id: str) -> Principal:
        """The principal of a token that is known by its id, as long as it is valid."""
        row = await self._find(app, token_id)
        if row is None or not self._is_valid(row):
            raise Unauthenticated
        return self._admit(row)

    async def _admit_agent(self, app: str, session_id: str) -> Principal:
        row = await self._store.read(app, lambda view: view.session(session_id))
        if row is None or row.closed_at is not None:
            raise Unauthenticated
        return Principal(app=app, scopes=CALLBACK_SCOPES, session_id=session_id)

    def _admit(self, row: TokenRow) -> Principal:
        self.uses.note(row)
        return Principal(app=row.app_name, token_id=row.token_id, scopes=frozenset(row.scopes))

    async def create_token(self, request: CreateToken) -> tuple[str, TokenRow]:
        """Make a token, and its app if that is new. The token itself is returned only here."""
        check_app_name(request.app_name)
        token, row = self._make(request.app_name, request, request.scopes or tuple(Scope))

        def work(tx: SystemTx) -> None:
            if tx.app_row(row.app_name) is None:
                tx.put_app(AppRow(app_name=row.app_name, created_at=row.created_at))
            tx.add_token(row)

        await self._store.write_system(work)
        return token, row

    async def create_own_token(self, caller: Principal, request: CreateOwnToken) -> tuple[str, TokenRow]:
        """Make a token of the caller's app that can do no more than the caller's, and for no longer."""
        scopes = request.scopes or tuple(scope for scope in Scope if scope in caller.scopes)
        _check_no_larger(caller, scopes)
        token, row = self._make(caller.app, request, scopes)

        def work(tx: SystemTx) -> TokenRow:
            mine = next((one for one in tx.tokens(caller.app) if one.token_id == caller.token_id), None)
            if mine is None or not self._is_valid(mine):
                raise Unauthenticated  # revoked while this request waited
            ends = [at for at in (row.expires_at, mine.expires_at) if at is not None]
            made = replace(row, expires_at=min(ends, default=None))
            tx.add_token(made)
            return made

        return token, await self._store.write_system(work)

    def _make(self, app: str, request: CreateOwnToken, scopes: Sequence[Scope]) -> tuple[str, TokenRow]:
        token, now, expires = new_token("cf_"), self._clock.now(), request.expires_in_secs
        row = TokenRow(
            token_id=new_id(),
            app_name=app,
            hash=hash_token(token),
            created_at=now,
            note=request.note,
            expires_at=now + expires * SECOND if expires else None,
            scopes=tuple(scope for scope in Scope if scope in scopes),
        )
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
                TokenRow(
                    token_id=new_id(),
                    app_name=app_name,
                    hash=hash_token(token),
                    created_at=now,
                    scopes=tuple(Scope),
                )
            )

        if await self._store.read_system(lambda view: view.token_by_hash(hash_token(token))) is None:
            await self._store.write_system(work)

    async def tokens(self, app_name: str | None = None) -> list[TokenRow]:
        rows = await self._store.read_system(lambda view: view.tokens(app_name))
        return [replace(row, last_used_at=self.uses.last_use(row)) for row in rows]

    async def _find(self, app: str, token_id: str | None) -> TokenRow | None:
        rows = await self._store.read_system(lambda view: view.tokens(app))
        return next((row for row in rows if row.token_id == token_id), None)

    async def revoke_own(self, caller: Principal, token_id: str) -> None:
        """Revoke a token of the caller's app. One that can do more than the caller's is refused."""
        row = await self._find(caller.app, token_id)
        if row is None:
            raise TokenNotFound
        _check_no_larger(caller, row.scopes)
        await self.revoke(token_id)

    async def revoke(self, token_id: str) -> None:
        """Revoke a token for the next call and for every stream that it opened, whoever waits for that."""
        await self._unbroken.run(self._revoke(token_id))

    async def _revoke(self, token_id: str) -> None:
        now = self._clock.now()
        with self._known.changing():
            is_there = await self._store.write_system(lambda tx: tx.change_token(token_id, revoked_at=now))
        if not is_there:
            raise TokenNotFound
        self._end_streams(token_id)

    async def end_logins(self, holder: str) -> None:
        """End all logins of a token, or of the operator, and the streams that they opened."""
        await self._store.write_system(lambda tx: tx.end_logins(holder))
        self._end_streams(_login_key(holder))

    def _end_streams(self, key: str) -> None:
        if self._store.peers is not None:
            self._store.peers.announce(key)
        self._end_own_streams(key)

    def _hear(self, key: str) -> None:
        if key:
            self._end_own_streams(key)
        elif self._principals:
            self._check_again = True
            if self._checking is None or self._checking.done():
                self._checking = asyncio.create_task(self._check_all(), name="looking after open streams")

    async def _check_all(self) -> None:
        """End the streams of whoever was refused elsewhere while nobody could tell us.

        Anybody who can connect to the database may say that there is something to check, as often as he
        likes: one look follows another only after a while.
        """
        while self._check_again:
            self._check_again = False
            with suppress(StoreUnavailable):
                for event, principal in list(self._principals.items()):
                    left = await self.seconds_left(principal)
                    if left is not None and left <= 0:
                        event.set()
            await asyncio.sleep(CHECK_SECS)

    def _end_own_streams(self, key: str) -> None:
        for event in self._watched.get(key, ()):
            event.set()

    @contextmanager
    def watch(self, principal: Principal) -> Iterator[asyncio.Event]:
        """An event that is set when the principal's token or login is ended while a stream is open."""
        event = asyncio.Event()
        keys = [] if principal.token_id is None else [principal.token_id]
        keys += [] if principal.login is None else [_login_key(principal.login.holder)]
        for key in keys:
            self._watched.setdefault(key, set()).add(event)
        self._principals[event] = principal
        try:
            yield event
        finally:
            del self._principals[event]
            for key in keys:
                self._watched[key].discard(event)
                if not self._watched[key]:
                    del self._watched[key]

    async def seconds_left(self, principal: Principal) -> float | None:
        """Seconds until the principal's token or login expires; None when neither does."""
        ends: list[Micros] = []
        login = principal.login
        if login is not None:
            held = await self._store.read_system(lambda view: view.login_round(login.holder))
            ends.append(login.ends_at if held == login.round else 0)
        if principal.token_id is not None:
            row = await self._find(principal.app, principal.token_id)
            if row is None or not self._is_valid(row):
                return 0.0
            ends += [] if row.expires_at is None else [row.expires_at]
        return (min(ends) - self._clock.now()) / SECOND if ends else None

    def _is_valid(self, row: TokenRow) -> bool:
        return row.revoked_at is None and (row.expires_at is None or row.expires_at > self._clock.now())


def _login_key(holder: str) -> str:
    return f"login {holder}"


def _check_no_larger(caller: Principal, scopes: Iterable[str]) -> None:
    larger = sorted(set(scopes) - caller.scopes)
    if larger:
        raise Forbidden(f"your token lacks {', '.join(larger)}, so it cannot rule over a token that has it")


def check_app_name(name: str) -> None:
    if not all(char.isalnum() or char in "-_." for char in name) or name.startswith("."):
        raise InvalidRequest("app_name may contain only letters, digits, '-', '_' and '.'")
