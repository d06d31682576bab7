"""What one node asks of another and waits for: a wish with words, and the wish that answers it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import orjson

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Store, SystemTx
from clawdforge.core.running.membership import Membership
from clawdforge.wire.base import Json
from clawdforge.wire.errors import (
    Conflict,
    ForgeAPIError,
    SessionBusy,
    StoreUnavailable,
    Unsupported,
    WorkspaceChanged,
    WorkspaceRefused,
)
from clawdforge.wire.nodes import NodeState

log = logging.getLogger(__name__)
LOOK_SECS: Final = 0.5
ANSWER_SECS: Final = 120.0
"""More than git is given for what is asked; the answer may be lost with whoever was asked."""
RAISED: Final = (Unsupported, SessionBusy, StoreUnavailable, WorkspaceChanged, WorkspaceRefused)
NO_ANSWER: Final = "no_answer"
"""Told by a server that ends."""

FAILED: Final = "the server that has the files failed; see its log"


class NoAnswer(SessionBusy):
    """the server that has the files of this session gave no answer; try again in a moment"""


ERRORS: Final[dict[str, type[ForgeAPIError]]] = {NO_ANSWER: NoAnswer} | {one.code: one for one in RAISED}


class Questions:
    def __init__(self, store: Store, clock: Clock, membership: Membership) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._asked: dict[str, asyncio.Future[Json]] = {}

    async def ask(self, node: str, kind: WishKind, session: SessionRow, words: Json) -> Json:
        """What the node answers; it raises here what it raised there, and NoAnswer where it is gone."""
        asked: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        wish = self._make(node, kind, session.app_name, session.session_id, words)
        self._asked[wish.wish_id] = asked
        try:
            await self._write(wish)
            async with asyncio.timeout(ANSWER_SECS):
                while not (await asyncio.wait({asked}, timeout=LOOK_SECS))[0]:
                    if not await self._store.read(session.app_name, lambda view: view.is_alive(node)):
                        raise NoAnswer
            answer = asked.result()
        except TimeoutError:
            raise NoAnswer from None
        finally:
            del self._asked[wish.wish_id]
        if "code" in answer:
            raise ERRORS.get(answer["code"], Conflict)(answer["error"])
        return answer

    async def answer(self, wish: WishRow, work: Callable[[Json], Awaitable[Json]]) -> None:
        """Do what another node asks, and tell it what came of it."""
        words: Json = orjson.loads(wish.body or "{}")
        said: Json = {"code": Conflict.code, "error": FAILED}  # of what nobody foresaw; whoever asked waits
        try:
            said = await work(words)
        except ForgeAPIError as error:
            said = {"code": error.code, "error": error.message}
        except asyncio.CancelledError:
            said = {"code": NO_ANSWER, "error": None}
            raise
        finally:
            reply = {**said, "to": words["wish_id"]}
            await self._write(self._make(words["by"], WishKind.ANSWER, wish.app_name, wish.session_id, reply))

    async def hear(self, wish: WishRow) -> None:
        """An answer has come; perhaps to somebody who does not wait any more."""
        words: Json = orjson.loads(wish.body or "{}")
        asked = self._asked.get(words.get("to", ""))
        if asked is not None and not asked.done():
            asked.set_result(words)

    def _make(self, node: str, kind: WishKind, app: str, session_id: str, words: Json) -> WishRow:
        wish_id = new_id()
        said = {**words, "wish_id": wish_id, "by": self._membership.node}
        return WishRow(
            wish_id=wish_id,
            app_name=app,
            session_id=session_id,
            node=node,
            kind=kind,
            wished_at=self._clock.now(),
            body=orjson.dumps(said).decode(),
        )

    async def _write(self, wish: WishRow) -> None:
        """Unless the node is gone: nobody would ever take it."""

        def work(tx: SystemTx) -> None:
            if any(row.node == wish.node and row.state is not NodeState.DEAD for row in tx.nodes()):
                tx.add_wish(wish)

        await self._store.write_system(work)
        if self._store.peers is not None:
            self._store.peers.tell(wish.node, "", "")
