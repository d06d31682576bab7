"""Lets connections and requests begin a few at a time, apps in turn: a crowd of one app's delays no other's.

Whose a request is has to be known before anything is done for it, and to find out is a good part of the work.
So it is remembered which app a credential belonged to when it was last checked. This opens nothing: it only
says where to wait. All that is unknown waits in one line.
"""

import re
from collections import OrderedDict
from typing import Final

from starlette.types import Scope

from clawdforge.core.pacing.loop_turns import NOBODY
from clawdforge.core.services.all import Services
from clawdforge.http.connections.connection import KEY, Connection
from clawdforge.http.head import Head, head_of

MAX_KNOWN: Final = 10_000
CREDENTIALS: Final = (b"authorization", b"cookie")
HEAD_LINE: Final = re.compile(rb"\r\n(authorization|cookie):[ \t]*([^\r\n]*)", re.IGNORECASE)
STRANGERS: Final = NOBODY
OPERATOR: Final = "operator.sock"
"""A line of its own; no app is named so."""


class Lanes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._apps: OrderedDict[int, str] = OrderedDict()  # by a hash: the credentials are not kept

    async def enter(self, scope: Scope) -> bool:
        """Wait for this request's turn. False if nobody waits for its answer any more: it has not begun."""
        await self.wait(self.lane_of(scope))
        connection = scope.get("state", {}).get(KEY)
        return not (isinstance(connection, Connection) and connection.is_gone)

    async def wait(self, lane: str) -> None:
        await self._services.loop_turns.enter(lane)

    def lane_of(self, scope: Scope) -> str:
        connection = scope.get("state", {}).get(KEY)
        if isinstance(connection, Connection) and connection.is_unix:
            return OPERATOR
        return self._find(_credential_in(head_of(scope)))

    def find(self, head: bytes) -> str:
        """The lane of a request that begins so. It is not parsed: a mistake only costs a better place."""
        lines = HEAD_LINE.findall(head.partition(b"\r\n\r\n")[0])
        return self._find(_credential_in(Head([(name.lower(), value) for name, value in lines])))

    def _find(self, credential: int | None) -> str:
        return STRANGERS if credential is None else self._apps.get(credential, STRANGERS)

    def remember(self, scope: Scope, app: str) -> None:
        """The credential of this request was good, and is this app's."""
        found = _credential_in(head_of(scope))
        if found is None:
            return
        self._apps[found] = app
        self._apps.move_to_end(found)
        if len(self._apps) > MAX_KNOWN:
            self._apps.popitem(last=False)


def _credential_in(head: Head) -> int | None:
    """What `authenticate` will look at: cookies only where there is no token.

    Whoever sends a good token with another cookie each time stays in its own line.
    """
    for kind in CREDENTIALS:
        values = head.list(kind)
        if values:
            return hash(tuple(values))
    return None
