"""Ends the connection of a server that stopped in the middle of a statement: nobody else could write.

Postgres itself ends who pauses between two statements. Who has sent half of one, or does not take its
answer, is waited for as long as its machine answers for it, and one does so whose programs are stopped. The
lock that all who write take goes with the connection. Only one that has waited for its own client over a
whole pause is ended, and it must still be at the same point when it is looked at again. One that is alive
and takes longer than that for a single message is ended too: the beats of all others wait for it. Its own
server knows that it is alive, and spares it.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from clawdforge.stores.postgres.link import ALL_ERRORS, Link, describe
from clawdforge.stores.postgres.writer import PgWriter

log = logging.getLogger(__name__)
LOOKS: Final = 4
"""In a pause. Beats wait for the same lock, and nobody may count as dead for it."""
AGAIN_PART: Final = 0.05
STUCK: Final = """
SELECT pid, state_change::text FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND classid::bigint << 32 | objid::bigint = 4710423071
  AND datname = current_database() AND database = datid AND pid <> $2
  AND wait_event_type = 'Client' AND state_change < clock_timestamp() - make_interval(secs => $1)"""
END: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid = $1 AND state_change::text = $2 AND wait_event_type = 'Client'"
)


class Relief:
    """A thread that looks when a batch has taken longer than a pause."""

    def __init__(self, open_link: Callable[[], Link], writer: PgWriter, pause: float) -> None:
        self._open_link = open_link
        self._writer = writer
        self._pause = pause
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-relief", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed.wait(self._pause / LOOKS):
            if self._writer.waited() < self._pause:
                continue
            try:
                with contextlib.closing(self._open_link()) as link:
                    relieve(link, self._pause, self._writer.backend)
            except ALL_ERRORS as error:  # Postgres may be what everybody waits for
                log.info("could not find out who keeps the store from being written: %s", describe(error))


def relieve(link: Link, pause: float, spared: int) -> None:
    """Let those who wait for the lock have it, if whoever has it is stopped."""
    found = link.fetch(STUCK, (pause, spared))
    if not found:
        return
    time.sleep(pause * AGAIN_PART)
    for pid, since in found:
        if link.fetch(END, (pid, since)) == [(True,)]:
            log.warning(
                "a server stopped in the middle of a statement, so nobody could write; it was cut off"
            )
