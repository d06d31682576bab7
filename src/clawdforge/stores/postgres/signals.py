"""What nodes tell each other over a connection of their own, after their commits: only where to look.

Many signals become one notification. None is promised to arrive: after the connection was lost, everybody is
told to look at everything.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import asyncpg
import orjson

from clawdforge.core.model import Commit
from clawdforge.stores.postgres.link import LOST, PATIENCE_SECS, SETTINGS

log = logging.getLogger(__name__)
CHANNEL: Final = "clawdforge"
GATHER_SECS: Final = 0.003
MOST_BYTES: Final = 7500  # Postgres takes 8,000
QUIET_SECS: Final = 10.0
FIRST_WAIT_SECS: Final = 0.2
LAST_WAIT_SECS: Final = 5.0
NOTIFY: Final = "SELECT pg_notify($1, $2)"


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
        self._task: asyncio.Task[None] | None = None

    def start(self, node: str) -> None:
        self._node = node
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="signals")

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
        if self._task is not None:
            self._commits.update(dict.fromkeys((one.app, one.session_id) for one in commits if one.events))
            self._changed.update(filter(None, changed))
            if self._commits or self._changed:
                self._waiting.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

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
                    self.look_everywhere()  # something may have been missed, here
                    self._commits["", ""] = None  # and there
                    self._changed.add("")
                    self._words[""] = None
                    for heed in self._heeding:
                        heed("")
                    self._waiting.set()
                    wait = FIRST_WAIT_SECS
                    await self._send_all(connection)
                finally:
                    connection.terminate()
            except (*LOST, asyncpg.PostgresError) as error:
                log.warning("other nodes cannot be told anything now: %s", error)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LAST_WAIT_SECS)

    async def _send_all(self, connection: "asyncpg.Connection") -> None:
        while True:
            try:
                async with asyncio.timeout(QUIET_SECS):
                    await self._waiting.wait()
            except TimeoutError:
                await connection.execute("SELECT 1")  # it may be gone, and nobody has said so
                continue
            await asyncio.sleep(GATHER_SECS)
            self._waiting.clear()
            for text in self._take():
                await connection.execute(NOTIFY, CHANNEL, text)

    def _take(self) -> list[str]:
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
        return [orjson.dumps({"n": self._node, **parts}).decode() for parts in found]

    def _on_notified(self, _connection: Any, _pid: int, _channel: str, text: object) -> None:
        try:
            told = orjson.loads(str(text))
            node, commits = told.get("n"), [Commit(str(app), str(one), ()) for app, one in told.get("s", ())]
            changed = set(map(str, told.get("c", ())))
            calls = [(str(to), str(app), str(one)) for to, app, one in told.get("t", ())]
            words = list(map(str, told.get("w", ())))
        except (ValueError, TypeError, AttributeError):
            return  # somebody else's: anybody who can connect may notify
        if node == self._node:
            return
        if commits or changed:
            self._deliver(commits, changed)
        for word in words:
            for heed in self._heeding:
                heed(word)
        for to, app, session_id in calls:
            if to == self._node:
                for listener in self._listeners:
                    listener(app, session_id)
