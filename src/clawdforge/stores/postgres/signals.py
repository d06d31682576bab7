"""What nodes tell each other over a connection of their own, after their commits: only where to look.

Many signals become one notification. None is promised to arrive: after the connection was lost, everybody is
told to look at everything. A node hears its own notifications too. One that does not, behind a pooler that
loses them for example, is told to look every second. Each says something now and then, so one that has heard
nobody else for long is alone, and keeps its commits to itself until somebody else speaks.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import asyncpg
import orjson

from clawdforge.core.models.rows import Commit
from clawdforge.stores.postgres.link import LOST, PATIENCE_SECS, SETTINGS

log = logging.getLogger(__name__)
CHANNEL: Final = "clawdforge"
GATHER_SECS: Final = 0.003
MOST_BYTES: Final = 7500  # Postgres takes 8,000
QUIET_SECS: Final = 10.0
DEAF_SECS: Final = 1.0
"""So long a notification may take to come back, and so often a node looks that hears nothing."""
ALONE_SECS: Final = 3.5 * QUIET_SECS
FIRST_WAIT_SECS: Final = 0.2
LAST_WAIT_SECS: Final = 5.0
NOTIFY: Final = "SELECT pg_notify($1, $2)"
DEAF: Final = (
    "notifications do not arrive, so this server looks every second; connect it to Postgres itself,"
    " or through a pooler that gives out connections for a session"
)


class Signals:
    """`deliver` is called in the event loop with what others have committed, and whose lists it changed."""

    def __init__(self, url: str, deliver: Callable[[list[Commit], set[str]], None]) -> None:
        self._url = url
        self._deliver = deliver
        self._node = ""
        self._listeners: list[Callable[[str, str], None]] = []
        self._commits: dict[tuple[str, str], None] = {}
        self._changed: set[str] = set()
        self._calls: dict[tuple[str, str, str], None] = {}
        self._words: dict[str, None] = {}
        self._heeding: list[Callable[[str], None]] = []
        self._waiting = asyncio.Event()
        self._said = self._heard = 0
        self._others_at = -ALONE_SECS  # when another node was heard last
        self._unheard_since: float | None = None
        self._is_deaf = False
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    def start(self, node: str) -> None:
        self._node = node
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="signals")
            self._looking = asyncio.create_task(self._look_while_deaf(), name="deaf signals")

    def listen(self, listener: Callable[[str, str], None]) -> None:
        self._listeners.append(listener)

    def tell(self, node: str, app: str, session_id: str) -> None:
        self._calls[node, app, session_id] = None
        self._waiting.set()

    def announce(self, word: str) -> None:
        self._words[word] = None
        self._waiting.set()

    def heed(self, listener: Callable[[str], None]) -> None:
        self._heeding.append(listener)

    def look_everywhere(self) -> None:
        self._deliver([Commit("", "", ())], {""})

    def note(self, commits: Iterable[Commit], changed: Iterable[str]) -> None:
        """Tell the others what this node has committed."""
        if self._task is not None and not self._is_alone():
            self._commits.update(dict.fromkeys((one.app, one.session_id) for one in commits if one.events))
            self._changed.update(filter(None, changed))
            if self._commits or self._changed:
                self._waiting.set()

    def _is_alone(self) -> bool:
        """Who does not hear itself does not hear others either, and goes on talking."""
        is_heard = not self._is_deaf and self._unheard_since is None
        return is_heard and asyncio.get_running_loop().time() - self._others_at >= ALONE_SECS

    async def close(self) -> None:
        for task in filter(None, (self._task, self._looking)):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        """Connect again and again. Nobody depends on it: those who wait look by themselves too."""
        wait = FIRST_WAIT_SECS
        while True:
            try:
                connection = await asyncpg.connect(
                    self._url,
                    timeout=PATIENCE_SECS,
                    command_timeout=PATIENCE_SECS,
                    server_settings={**SETTINGS, "synchronous_commit": "off"},
                )
                try:
                    await connection.add_listener(CHANNEL, self._on_notified)
                    self._make_up_for_missed()
                    self._words[""] = None
                    self._have_others_look()
                    wait = FIRST_WAIT_SECS
                    await self._send_all(connection)
                finally:
                    self._unheard_since = None
                    connection.terminate()
            except (*LOST, asyncpg.PostgresError) as error:
                log.warning("other nodes cannot be told anything now: %s", error)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LAST_WAIT_SECS)

    async def _send_all(self, connection: "asyncpg.Connection") -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUIET_SECS):
                    await self._waiting.wait()
                    await asyncio.sleep(GATHER_SECS)
            self._waiting.clear()
            # Also when there is nothing to say: the connection may be gone, and nobody has said so.
            for parts in self._take() or [{}]:
                self._said += 1
                text = orjson.dumps({"n": self._node, "k": self._said, **parts}).decode()
                await connection.execute(NOTIFY, CHANNEL, text)
                if self._heard < self._said and self._unheard_since is None:
                    self._unheard_since = asyncio.get_running_loop().time()

    async def _look_while_deaf(self) -> None:
        while True:
            await asyncio.sleep(DEAF_SECS)
            now, since = asyncio.get_running_loop().time(), self._unheard_since
            is_deaf = since is not None and now - since >= DEAF_SECS
            if is_deaf:
                self._waiting.set()  # to be heard or not
            if is_deaf and not self._is_deaf:
                log.warning("%s", DEAF)
            if is_deaf or self._is_deaf:
                self._make_up_for_missed()
            self._is_deaf = is_deaf

    def _have_others_look(self) -> None:
        """They may have missed something as well."""
        self._commits["", ""] = None
        self._changed.add("")
        self._waiting.set()

    def _make_up_for_missed(self) -> None:
        self.look_everywhere()
        for heed in self._heeding:
            heed("")

    def _take(self) -> list[dict[str, list[Any]]]:
        """Everything that waits, in as many notifications as it needs."""
        words: list[tuple[str, Any]] = [("s", pair) for pair in self._commits]
        words += [("c", app) for app in sorted(self._changed)]
        words += [("t", call) for call in self._calls]
        words += [("w", word) for word in self._words]
        self._commits, self._changed, self._calls, self._words = {}, set(), {}, {}
        found, parts, size = [], dict[str, list[Any]](), MOST_BYTES
        for kind, word in words:
            length = len(orjson.dumps(word)) + 1
            if size + length > MOST_BYTES:
                parts, size = {}, 100
                found.append(parts)
            parts.setdefault(kind, []).append(word)
            size += length
        return found

    def _on_notified(self, _connection: Any, _pid: int, _channel: str, text: object) -> None:
        try:
            told = orjson.loads(str(text))
            number = int(told.get("k", 0))
            node, commits = told.get("n"), [Commit(str(app), str(one), ()) for app, one in told.get("s", ())]
            changed = set(map(str, told.get("c", ())))
            calls = [(str(to), str(app), str(one)) for to, app, one in told.get("t", ())]
            words = list(map(str, told.get("w", ())))
        except (ValueError, TypeError, AttributeError):
            return  # somebody else's: anybody who can connect may notify
        if node == self._node:
            self._heard, self._unheard_since = number, None
            return
        was_alone, self._others_at = self._is_alone(), asyncio.get_running_loop().time()
        if was_alone:  # of what was committed until now, nobody has been told
            self._have_others_look()
        if commits or changed:
            self._deliver(commits, changed)
        for word in words:
            for heed in self._heeding:
                heed(word)
        for to, app, session_id in calls:
            if to == self._node:
                for listener in self._listeners:
                    listener(app, session_id)
