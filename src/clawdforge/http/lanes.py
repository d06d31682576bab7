"""Lets requests begin a few at a time, one app after another: a crowd of one app's delays no other's.

Whose a request is has to be known before anything is done for it, and to find out is a good part of the work.
So it is remembered which app a credential belonged to when it was last checked. This opens nothing: it only
says where to wait. All that is unknown waits in one line.
"""

from collections import OrderedDict
from typing import Final

from starlette.types import Scope

from clawdforge.core.services.all import Services
from clawdforge.http.connection import KEY, Connection

MAX_KNOWN: Final = 10_000
CREDENTIALS: Final = (b"authorization", b"cookie")
STRANGERS: Final = ""
OPERATOR: Final = "operator.sock"
"""A line of its own; no app is named so."""


class Lanes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._apps: OrderedDict[int, str] = OrderedDict()  # by a hash: the credentials are not kept

    async def enter(self, scope: Scope) -> bool:
        """Wait for this request's turn. False if nobody waits for its answer any more: it has not begun."""
        await self._services.loop_turns.enter(self.lane_of(scope))
        connection = scope.get("state", {}).get(KEY)
        return not (isinstance(connection, Connection) and connection.is_gone)

    def lane_of(self, scope: Scope) -> str:
        connection = scope.get("state", {}).get(KEY)
        if isinstance(connection, Connection) and connection.is_unix:
            return OPERATOR
        found = _credential_of(scope)
        return STRANGERS if found is None else self._apps.get(found, STRANGERS)

    def remember(self, scope: Scope, app: str) -> None:
        """The credential of this request was good, and is this app's."""
        found = _credential_of(scope)
        if found is None:
            return
        self._apps[found] = app
        self._apps.move_to_end(found)
        if len(self._apps) > MAX_KNOWN:
            self._apps.popitem(last=False)


def _credential_of(scope: Scope) -> int | None:
    """What `authenticate` will look at: cookies only where there is no token.

    Whoever sends a good token with another cookie each time stays in its own line.
    """
    for kind in CREDENTIALS:
        values = tuple(value for name, value in scope["headers"] if name == kind)
        if values:
            return hash(values)
    return None
