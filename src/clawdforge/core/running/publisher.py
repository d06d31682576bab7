"""Publishes the files of sessions after their turns, so that another node can go on with them.

It runs behind the answer. The home is published as it was copied after a turn, and the workspace as it was in
a moment in which nothing moved in it. What names them is written under the fence of the session, which the
next turn raises, and counts only when all pieces are on stable storage.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

from clawdforge.core.clock import Clock
from clawdforge.core.models.blobs import PublicationRow, owners_of
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import LeaseLost, Store, Tx, View
from clawdforge.core.ports.shared_files import NotStill, SharedFiles, TooMuch, TreeReading
from clawdforge.core.rules.leases import check_lease, is_held_elsewhere
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.piece_box import PieceBox, to_end, use_all
from clawdforge.wire.errors import ForgeAPIError, NotFound, Unavailable

log = logging.getLogger(__name__)
REST_SECS: Final = 1.0
"""Turns that follow one another closely are published once; and times of files are coarse."""
STILL_SECS: Final = 0.1
STOP_SECS: Final = 10.0
AGAIN_SECS: Final = 15.0
WORKERS: Final = 2
TRIES: Final = 20
SELDOM_SECS: Final = 60.0
"""After so many tries, it is tried so often, until it is done: till then the session needs this node."""
PAGE: Final = 200
Verdict = Literal["done", "moved", "later"]


@dataclass(frozen=True, slots=True)
class Due:
    """When to publish for a session of an app, and how often that was tried."""

    app: str
    at: float
    tries: int
    may_be_early: bool = False
    """Something moved, which may have been an agent that is gone when the node lets go of the session."""


class Publisher:
    def __init__(
        self, store: Store, clock: Clock, membership: Membership, files: SharedFiles, box: PieceBox
    ) -> None:
        self._store = store
        self._clock = clock
        self._membership = membership
        self._files = files
        self._box = box
        self._due: dict[str, Due] = {}  # by session
        self._busy: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Event()
        self._places = asyncio.Semaphore(WORKERS)

    def note(self, app: str, session_id: str) -> None:
        """A turn has ended here, or files were put back."""
        if self._membership.has_peers:
            self._put(app, session_id, REST_SECS, 0)

    async def is_first_and_empty(self, session: SessionRow, turn_index: int) -> bool:
        """Whether a turn that ends here is the session's first, of which nothing is published yet, and has
        left the session's own workspace empty."""
        here = self._membership.folder
        if turn_index > 1 or here is None or not session.own_cwd or session.folder != here:
            return False
        try:
            return await to_end(lambda: self._files.is_empty(session))
        except (OSError, RuntimeError):  # there may be no more threads
            return False

    async def finish(self, session_id: str) -> bool:
        """Publish what is due for a session now, since this node is about to let it go.

        False if it could not be done, and is still due; at once, where that was tried before and its time has
        not come again. What moved while others tried is tried once more: its agent may have gone since.
        """
        tries = None
        verdict: Verdict = "moved"
        for _ in range(TRIES):
            due = await self._find_due(session_id)
            if due is None:
                return True
            if tries is None:  # all of these are one
                tries = due.tries
                if due.tries and not due.may_be_early and due.at > asyncio.get_running_loop().time():
                    return False
            verdict = await self._try_now(session_id, due, tries)
            if verdict == "later":
                break
            if verdict == "moved":  # its agent has only just gone, and times of files are coarse
                await asyncio.sleep(STILL_SECS)
        if verdict != "done":
            _say_if_given_up(session_id, tries or 0)
        return False

    async def _find_due(self, session_id: str) -> Due | None:
        """What is due for a session, once nobody is at it."""
        while session_id in self._busy:
            await self._busy[session_id].wait()
        return self._due.get(session_id)

    async def _try_now(self, session_id: str, due: Due, tries: int) -> Verdict:
        del self._due[session_id]
        return await self._try(due.app, session_id, tries)

    async def finish_all(self) -> None:
        """The same for all, when the server stops, as far as there is time for it: nobody is tried a second
        time before everybody was once."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECS):
                left = list(dict.fromkeys([*self._due, *self._busy]))
                for _ in range(TRIES):
                    left = [session_id for session_id in left if await self._try_last(session_id)]
                    if not left:
                        break
                    await asyncio.sleep(STILL_SECS)
        for session_id in {*self._due, *self._busy}:
            log.warning(
                "the server stops, and the files of this session are not published as they are now",
                extra={"session_id": session_id},
            )

    async def _try_last(self, session_id: str) -> bool:
        """Whether there is reason to try it again."""
        due = await self._find_due(session_id)
        if due is None or await self._try_now(session_id, due, due.tries) == "later":
            return False
        return session_id in self._due

    async def run(self) -> None:
        await self._note_all()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WORKERS):
                tasks.create_task(self._work())

    async def _note_all(self) -> None:
        """What a server that was killed here did not get to."""
        here, after = self._membership.folder or "", ""
        while found := await self._store.read_system(
            lambda view, after=after: view.unpublished_sessions(here, after, PAGE)  # type: ignore[misc]
        ):
            for app, session_id in found:
                self._put(app, session_id, REST_SECS, 0)
            after = found[-1][1]

    async def _work(self) -> None:
        while True:
            session_id = await self._wait_for_next()
            due = self._due.pop(session_id)
            verdict = await self._try(due.app, session_id, due.tries)
            if verdict == "moved" and (again := self._due.get(session_id)) is not None:
                self._due[session_id] = replace(again, may_be_early=again.tries < TRIES)
            if verdict != "done":
                _say_if_given_up(session_id, due.tries)

    async def _wait_for_next(self) -> str:
        """The first session whose time has come and that nobody is at."""
        while True:
            now = asyncio.get_running_loop().time()
            free = [(due.at, one) for one, due in self._due.items() if one not in self._busy]
            if free and min(free)[0] <= now:
                return min(free)[1]
            self._changed.clear()
            try:
                async with asyncio.timeout(min(free)[0] - now if free else None):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _try(self, app: str, session_id: str, tries: int) -> Verdict:
        done = self._busy[session_id] = asyncio.Event()
        extra = {"session_id": session_id}
        verdict: Verdict = "done"
        try:
            async with self._places:
                await self._publish(app, session_id)
        except NotStill as error:
            log.info("the workspace was not published yet: %s", error, extra=extra)
            verdict = "moved"
        except LeaseLost:
            log.info("the session went on while its files were sent", extra=extra)
        except (Unavailable, OSError) as error:
            log.warning("files were not published yet: %s", error, extra=extra)
            verdict = "later"
        except asyncio.CancelledError:
            self._due.setdefault(session_id, Due(app, 0.0, tries))  # for `finish_all`, or its last words
            raise
        except NotFound:
            log.info("the session is gone, and so are its files", extra=extra)
        except ForgeAPIError as error:  # such as a damaged row
            log.warning("files were not published: %s", error.message, extra=extra)
            verdict = "later"
        finally:
            del self._busy[session_id]
            done.set()
            self._changed.set()
        if verdict != "done":
            self._put(app, session_id, AGAIN_SECS if tries + 1 < TRIES else SELDOM_SECS, tries + 1)
        return verdict

    def _put(self, app: str, session_id: str, secs: float, tries: int) -> None:
        self._due[session_id] = Due(app, asyncio.get_running_loop().time() + secs, tries)
        self._changed.set()

    async def _publish(self, app: str, session_id: str) -> None:
        node, here = self._membership.node, self._membership.folder

        def is_mine(session: SessionRow) -> bool:
            """Its workspace is here, though another node may hold it for a change of its history."""
            return session.own_cwd and session.folder == here

        def look(view: View) -> tuple[SessionRow | None, PublicationRow | None]:
            session = None if view.active_turn(session_id) else view.session(session_id)
            if session is not None and not is_mine(session) and is_held_elsewhere(view, session, node):
                session = None
            return session, view.publication(session_id)

        session, before = await self._store.read(app, look)
        if session is None or session.home_at != here:
            return  # if a turn runs, its end comes here again; if it runs elsewhere, files here are old
        if session.own_cwd and session.folder == here:
            await self._publish_workspace(session, before)
        home = await to_end(lambda: self._files.read_home(session_id))
        if home is None or (before is not None and before.turn_index >= home.turn_index):
            return
        if await self._send(session, home):
            part = {"turn_index": home.turn_index, "agent_session_id": home.agent_session_id}
            await self._record(session, owners_of(session_id)[0], home, home=home.manifest, **part)

    async def _publish_workspace(self, session: SessionRow, before: PublicationRow | None) -> None:
        reading = await to_end(lambda: self._files.read_workspace(session))
        owner = owners_of(session.session_id)[1]
        if not await self._send(session, reading):
            await self._record(session, owner, None, workspace=None)
        elif before is None or before.workspace != reading.manifest:
            await self._record(session, owner, reading, workspace=reading.manifest)

    async def _send(self, session: SessionRow, reading: TreeReading) -> bool:
        """All pieces of a tree. False if it cannot be published."""
        try:
            await self._box.send_tree(session.app_name, reading)
        except TooMuch as error:
            log.warning(
                "files cannot be published, so the session needs this node: %s",
                error,
                extra={"session_id": session.session_id},
            )
            return False
        finally:
            await to_end(reading.close)
        return True

    async def _record(
        self, session: SessionRow, owner: str, reading: TreeReading | None, **part: object
    ) -> None:
        """The part of the publication that has changed, with the pieces that it names."""
        app, session_id, now = session.app_name, session.session_id, self._clock.now()
        digests = frozenset[str]() if reading is None else reading.digests

        def work(tx: Tx) -> bool:
            check_lease(tx, session_id, session.fence)
            row = tx.publication(session_id) or PublicationRow(session_id=session_id, published_at=now)
            is_whole = use_all(tx, owner, digests, now)
            if is_whole:
                tx.publish(replace(row, published_at=now, **part))  # type: ignore[arg-type]
            return is_whole

        if not await self._store.write(app, work):
            self._files.forget(session_id)  # what was read before may be gone, and has to be sent again
            raise OSError("pieces were removed while others were sent")


def _say_if_given_up(session_id: str, tries: int) -> None:
    """Once, after a try that failed; from then on it is tried seldom."""
    if tries + 1 == TRIES:
        log.error(
            "files could not be published so far; their session needs this server",
            extra={"session_id": session_id},
        )
