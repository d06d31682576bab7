"""Logins of browsers: cookies that stand for a token, codes that are good for one login, and their end."""

import hashlib
import hmac
import secrets
from dataclasses import replace
from typing import Final
from urllib.parse import quote, unquote

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.ids import new_token
from clawdforge.core.models.principal import OPERATOR, Login, Principal
from clawdforge.core.ports import Store
from clawdforge.core.services.access import AccessService, hash_token
from clawdforge.core.services.login_codes import CODE_SECS, Code, open_codes
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import Unauthenticated

LOGIN_SECS: Final = 30 * 86_400
OPERATOR_SECS: Final = 3600


class LoginService:
    """A cookie is signed and not stored: it is good as long as its token is, and its round lasts."""

    def __init__(self, store: Store, clock: Clock, access: AccessService, admin_token: str) -> None:
        self._store = store
        self._clock = clock
        self._access = access
        self._key = hash_token(f"login:{admin_token}")
        self._codes = open_codes(store, clock)

    async def log_in(self, principal: Principal) -> tuple[str, int]:
        """The value of a browser's cookie and its seconds: it opens what the principal's token opens.

        Browsers send a cookie to every port of a host, so it must not be the token itself.
        """
        holder = OPERATOR if principal.admin else principal.token_id
        if holder is None:
            raise Unauthenticated("this token belongs to an agent, and only people log in")
        seconds = OPERATOR_SECS if principal.admin else LOGIN_SECS
        held = await self._store.read_system(lambda view: view.login_round(holder))
        head = f"{holder}.{self._clock.now() // SECOND + seconds}.{secrets.token_urlsafe(9)}"
        # A header is Latin text, and an app's name need not be.
        return f"{head}.{self._sign(head, held, principal.app)}.{quote(principal.app, safe='')}", seconds

    async def authenticate(self, cookie: str, *, is_operators: bool) -> Principal:
        """Who logged in, as long as the token is valid and nobody has ended the login."""
        parts = cookie.split(".", 4)
        if len(parts) != 5 or (parts[0] == OPERATOR) is not is_operators:
            raise Unauthenticated
        holder, expires, _, signature, quoted = parts
        app = unquote(quoted)
        held = await self._store.read_system(lambda view: view.login_round(holder))
        signed = self._sign(".".join(parts[:3]), held, app)
        if not hmac.compare_digest(signature.encode(), signed.encode()):
            raise Unauthenticated
        ends_at = int(expires) * SECOND
        if ends_at <= self._clock.now():
            raise Unauthenticated
        login = Login(holder, ends_at, held)
        if is_operators:
            return Principal(app="", admin=True, login=login)
        return replace(await self._access.admit(app, holder), login=login)

    async def end_all(self, principal: Principal) -> None:
        """End every login of the principal's token, and the codes that it has made."""
        holder = OPERATOR if principal.admin else principal.token_id
        if holder is None:
            return
        await self._codes.forget(holder)
        await self._access.end_logins(holder)

    async def make_code(self, principal: Principal) -> tuple[str, Micros]:
        """A code that logs in once within a minute, and when it ends."""
        if principal.token_id is None:
            raise Unauthenticated
        code = new_token("cfc_")
        await self._codes.add(hash_token(code), Code(principal.app, principal.token_id))
        return code, self._clock.now() + CODE_SECS * SECOND

    async def check_code(self, code: str) -> None:
        """Whether a code would log in; it still does then."""
        _need(await self._codes.find(hash_token(code)))

    async def use_code(self, code: str) -> Principal:
        """The principal of a code, which is gone with this: nobody else can use it."""
        found = _need(await self._codes.take(hash_token(code)))
        return await self._access.admit(found.app, found.token_id)

    def _sign(self, head: str, held: int, app: str) -> str:
        text = f"{head}.{held}.{app}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()


def _need(code: Code | None) -> Code:
    if code is None:
        raise Unauthenticated(
            "this code was used already, is more than a minute old, or was made before the server's last"
            " start; get another with `clawdforge open`"
        )
    return code
