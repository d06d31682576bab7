"""A server that counts what it does: statements, commits, tasks, passes of the event loop, jobs of threads.

    python -m bench.counted FILE serve …

The counts stand in FILE, which anybody may read while the server runs: exact numbers, however busy the
machine is. The server itself is as it always is.
"""

import asyncio
import concurrent.futures
import mmap
import struct
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import apsw

from clawdforge.cli import main as run_command

NAMES: Final = ("statements", "reads", "commits", "tasks", "iterations", "timers", "hops")
"""`reads` are the statements of the connections that only read, `hops` what is handed to other threads."""
SENDING: Final = ("fetch", "fetch_while", "run", "run_many")
"""Calls of a connection to Postgres: each waits for an answer."""


class Tally:
    """Numbers in a file. Each is written by whoever counts; a lost one would take two threads at once."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(8 * len(NAMES)))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8 * len(NAMES))
        self._counts = dict.fromkeys(NAMES, 0)

    def add(self, name: str) -> None:
        self._counts[name] += 1
        struct.pack_into("q", self._memory, 8 * NAMES.index(name), self._counts[name])


def read_counts(path: Path) -> dict[str, int]:
    return dict(zip(NAMES, struct.unpack(f"{len(NAMES)}q", path.read_bytes()), strict=True))


def install(tally: Tally) -> None:
    """Count from here on, in this process."""

    def follow(connection: apsw.Connection) -> None:
        reads = connection.readonly("main")

        def count(_cursor: apsw.Cursor, sql: str, _values: Any) -> bool:
            tally.add("reads" if reads else "statements")
            if sql == "COMMIT":
                tally.add("commits")
            return True

        connection.exec_trace = count

    apsw.connection_hooks.append(follow)
    if find_spec("asyncpg") is not None:
        for name in SENDING:
            _count_sent(import_module("clawdforge.stores.postgres.link").Link, name, tally)
        _count_sent(import_module("clawdforge.stores.postgres.loop_links").LoopLinks, "fetch", tally)
    loop: Any = asyncio.BaseEventLoop
    _count_calls(loop, "create_task", tally, "tasks")
    _count_calls(loop, "_run_once", tally, "iterations")
    _count_calls(loop, "call_at", tally, "timers")
    _count_calls(concurrent.futures.ThreadPoolExecutor, "submit", tally, "hops")


def _count_calls(owner: Any, name: str, tally: Tally, kind: str) -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def call(*args: Any, **keywords: Any) -> Any:
        tally.add(kind)
        return original(*args, **keywords)

    setattr(owner, name, call)


def _count_sent(link: Any, name: str, tally: Tally) -> None:
    original: Callable[..., Any] = getattr(link, name)

    def send(self: Any, sql: str, *args: Any) -> Any:
        tally.add("statements" if threading.current_thread().name == "store-writer" else "reads")
        if sql == "COMMIT" or "keep_lock" in sql:
            tally.add("commits")
        return original(self, sql, *args)

    setattr(link, name, send)


if __name__ == "__main__":
    install(Tally(Path(sys.argv[1])))
    sys.argv = ["clawdforge", *sys.argv[2:]]
    run_command()
