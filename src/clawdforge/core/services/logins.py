"""Logins of browsers: cookies that stand for a token, codes that are good for one login, and their end."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, unquote

from clawdforge.core.model import SECOND, Clock, new_token
from clawdforge.core.ports import Store
from clawdforge.core.principal import OPERATOR, Login, Principal
from clawdforge.core.services.access import AccessService, hash_token
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import Unauthenticated

LOGIN_SECS: Final = 30 * 86_400
OPERATOR_SECS: Final = 3600
CODE_SECS: Final = 60
MOST_CODES: Final = 16
"""So many codes of one token may wait to be used; a further one takes the place of the oldest."""


@dataclass(frozen=True, slots=True)
class _Code:
    app: str
    token_id: str
    ends_at: Micros  # by the clock that nobody can set


class LoginService:
    """A cookie is signed and not stored: it is good as long as its token is, and its round lasts.

    Codes are in memory alone, so that none outlives its minute or the server.
    """

    def __init__(self, store: Store, clock: Clock, access: AccessService, admin_token: str) -> None:
        self._store = store
        self._clock = clock
        self._access = access
        self._key = hash_token(f"login:{admin_token}")
        self._codes: dict[bytes, _Code] = {}  # the oldest first

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
        self._codes = {key: code for key, code in self._codes.items() if code.token_id != holder}
        await self._access.end_logins(holder)

    def make_code(self, principal: Principal) -> tuple[str, Micros]:
        """A code that logs in once within a minute, and when it ends."""
        if principal.token_id is None:
            raise Unauthenticated
        now = self._clock.steady()
        self._codes = {key: code for key, code in self._codes.items() if code.ends_at > now}
        mine = [key for key, code in self._codes.items() if code.token_id == principal.token_id]
        for key in mine[: max(0, len(mine) - MOST_CODES + 1)]:
            del self._codes[key]
        code = new_token("cfc_")
        ends_at = now + CODE_SECS * SECOND
        self._codes[hash_token(code)] = _Code(principal.app, principal.token_id, ends_at)
        return code, self._clock.now() + CODE_SECS * SECOND

    def check_code(self, code: str) -> _Code:
        found = self._codes.get(hash_token(code))
        if found is None or found.ends_at <= self._clock.steady():
            raise Unauthenticated(
                "this code was used already, is more than a minute old, or was made before the server's last"
                " start; get another with `clawdforge open`"
            )
        return found

    async def use_code(self, code: str) -> Principal:
        """The principal of a code, which is gone before anything is waited for: nobody else can use it."""
        found = self.check_code(code)
        del self._codes[hash_token(code)]
        return await self._access.admit(found.app, found.token_id)

    def _sign(self, head: str, held: int, app: str) -> str:
        text = f"{head}.{held}.{app}".encode("utf-8", "surrogatepass")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()
