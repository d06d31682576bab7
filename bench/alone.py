"""Rows of our server alone: readers, history, neighbours, spares, imports, and the limits of the machine."""

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from bench import flat, history, imports, recovery, spare, turn
from bench.contenders import OURS, PLENTY, Contender, Forge, running
from bench.contests import SHORT, STAMP, Sizes, percentile
from bench.kit import cpu_secs, new_session, server
from bench.neighbours import post_body, repeating
from bench.plain import EVENT_STREAM, Connection, Request, as_json
from bench.table import Table
from proofs.kit.server import ROOT, free_port

RAW: Final = "raw uvicorn"
READERS: Final = ((1, 30_000), (100, 2_000), (1000, 200))
"""So many, and how many chunks each of them reads."""
AT_ONCE: Final = 50
MARK: Final = b'"type":"text"'
ENDED: Final = b'"type":"turn.ended"'
ALONE_SECS: Final = 3.0
LONG_HISTORY: Final = 10_000
FLOOD: Final = 100_000
OPERATIONS: Final = ("undo", "retry", "open", "list a page", "search")
NUMBERED: Final = {"list a page": "list a page", "open": "open", "search one word": "search"}


def measure_limits(table: Table, sizes: Sizes, folder: Path) -> None:
    """What the disk and a pipe take, beside what a turn takes."""
    base = folder / "limits"
    base.mkdir()
    count = sizes.turns * sizes.blocks
    name = "a turn, with a pause before the next, p50"
    for what, times in (
        ("fsync", turn.fsync_floor(base, count)),
        ("bare pipe", turn.bare_pipe(base, count)),
    ):
        table.limit("turn", name, "ms", what, statistics.median(times) * 1e3)


def measure_readers(table: Table, sizes: Sizes, folder: Path) -> None:
    """One session's answer at many readers of its stream; uvicorn alone does the same in between."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "bench.raw", str(port)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        running(command, folder / "raw", env, lambda: is_open(url), 30) as raw,
        server(folder / "readers", **PLENTY) as (http, pid),
    ):
        headers = {"Authorization": http.headers["Authorization"]}
        ours = Contender(OURS, str(http.base_url).rstrip("/"), pid, Forge(headers), folder, is_forge=True)
        for readers, chunks in READERS:
            count = chunks // 10 if sizes is SHORT else chunks
            found: dict[str, list[float]] = {OURS: [], RAW: []}
            rates: list[float] = []
            for _ in range(1 if sizes is SHORT else 3):
                took, cpu = asyncio.run(read_along(ours, http, readers, count))
                found[OURS].append(readers * count / cpu)
                rates.append(readers * count / took)
                found[RAW].append(readers * count / asyncio.run(read_raw(url, raw, readers, count)))
            what = f"{readers:,} reader{'s' if readers > 1 else ''}"
            name = f"{what}: chunks delivered for a second of CPU"
            table.put("readers", name, "/s", OURS, statistics.median(found[OURS]))
            table.limit("readers", name, "/s", RAW, statistics.median(found[RAW]))
            table.put("readers", f"{what}: chunks delivered", "/s", OURS, statistics.median(rates))
            waits = asyncio.run(read_stamps_along(ours, readers))
            delay = f"{what}: from the agent's write to a reader, p50"
            table.put("readers", delay, "ms", OURS, statistics.median(waits))


def is_open(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/1", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False


@dataclass
class Reader:
    """Of a session's events; its answer has begun."""

    link: Connection
    pieces: AsyncIterator[bytes]


async def follow(ours: Contender, session: str, head: int, count: int) -> list[Reader]:
    """Some at a time: a crowd that comes at once is not what is measured."""
    path = f"/sessions/{session}/events?after={head}&form=compact"
    request = Request("GET", path, headers=EVENT_STREAM)

    async def begin() -> Reader:
        link = await ours.connect()
        return Reader(link, await link.stream(request))

    found: list[Reader] = []
    while len(found) < count:
        found += await asyncio.gather(*(begin() for _ in range(min(AT_ONCE, count - len(found)))))
    return found


async def read_along(ours: Contender, http: httpx2.Client, readers: int, count: int) -> tuple[float, float]:
    """Seconds by the clock and of the server's processor."""
    session = await asyncio.to_thread(awake_session, http)
    head = int(http.get(f"/sessions/{session}").json()["head"])
    following = await follow(ours, session, head, readers)
    tasks = [asyncio.create_task(count_chunks(one.pieces)) for one in following]
    before, begun = ours.cpu(), time.perf_counter()
    asker = await ours.connect()
    await asker.ask(as_json("POST", f"/sessions/{session}/turns", {"prompt": f"chunks {count}"}))
    seen = await asyncio.gather(*tasks)
    found = time.perf_counter() - begun, ours.cpu() - before
    assert seen == [count] * readers, f"of {count} chunks came {min(seen)} to {max(seen)}"
    for link in [asker, *(one.link for one in following)]:
        link.close()
    return found


async def count_chunks(pieces: AsyncIterator[bytes]) -> int:
    seen, tail = 0, b""
    async for piece in pieces:
        text = tail + piece
        seen += text.count(MARK)
        if ENDED in text:
            break
        tail = text[-len(MARK) + 1 :]
    return seen


async def read_raw(url: str, pid: int, readers: int, count: int) -> float:
    """Seconds of the processor."""
    open_ = [await Connection.open(url, {}) for _ in range(readers)]
    before = cpu_secs(pid)
    await asyncio.gather(*(drain(link, Request("GET", f"/{count}")) for link in open_))
    found = cpu_secs(pid) - before
    for link in open_:
        link.close()
    return found


async def drain(link: Connection, request: Request) -> None:
    async for _ in await link.stream(request):
        pass


async def read_stamps_along(ours: Contender, readers: int, count: int = 20) -> list[float]:
    """Milliseconds of all readers; a quarter of a second apart, so that each is with all before the next."""
    asker = await ours.connect()
    session = ours.dialect.read_session(await asker.ask(ours.dialect.make(stamping=True)))
    await asker.ask(ours.dialect.turn(session, "echo hello"))
    following = await follow(ours, session, 0, readers)
    tasks = [asyncio.create_task(note_stamps(one.pieces, count + 1)) for one in following]
    await asker.ask(ours.dialect.turn(session, f"stamps {count} 250"))
    found = [wait for waits in await asyncio.gather(*tasks) for wait in waits[1:]]
    for link in [asker, *(one.link for one in following)]:
        link.close()
    return found


async def note_stamps(pieces: AsyncIterator[bytes], count: int) -> list[float]:
    waits: list[float] = []
    async for piece in pieces:
        now = time.monotonic_ns()
        waits += [(now - int(stamp)) / 1e6 for stamp in STAMP.findall(piece)]
        if len(waits) >= count:
            break
    return waits


def awake_session(http: httpx2.Client) -> str:
    session = new_session(http)
    post_body(http, f"/sessions/{session}/turn", {"prompt": "echo warm"})
    return session


def measure_history(table: Table, sizes: Sizes, _folder: Path) -> None:
    """CPU of a call, by the messages of a session and by the sessions of an app."""
    short = sizes is SHORT
    for length in (10, 1000) if short else (10, 1000, 10_000):
        found = history.measure_length(length, 20 if short else 50)
        for name in OPERATIONS:
            what = f"CPU: {name}, {length:,} messages"
            table.put("history", what, "ms", OURS, found[name])
    for number in (100,) if short else (100, 5000):
        found = history.measure_number(number, 20 if short else 50)
        for name, called in NUMBERED.items():
            table.put("history", f"CPU: {called}, {number:,} sessions", "ms", OURS, found[name])


def measure_beside(table: Table, sizes: Sizes, folder: Path) -> None:
    """How long a GET of one session takes while another does something heavy."""
    data = folder / "beside"
    length = LONG_HISTORY // 10 if sizes is SHORT else LONG_HISTORY
    said = [{"role": ("user", "assistant")[number % 2], "content": "x" * 400} for number in range(length)]
    with server(data, **PLENTY) as (http, _):
        path = f"/sessions/{awake_session(http)}"
        flooded = awake_session(http)
        long = str(post_body(http, "/sessions/import", {"messages": said, "agent": "scripted"})["session_id"])
        archive, count = folder / "backup.tar", FLOOD // 10 if sizes is SHORT else FLOOD
        flood, all_turns = {"prompt": f"chunks {count}"}, {"turns": flat.TURNS}
        works: list[tuple[str, Callable[[], Any]]] = [
            ("nothing else", lambda: time.sleep(ALONE_SECS)),
            (f"{count:,} chunks", lambda: post_body(http, f"/sessions/{flooded}/turn", flood)),
            (f"undo of {length:,} messages", lambda: post_body(http, f"/sessions/{long}/undo", all_turns)),
            ("its redo", lambda: history.post(http, long, "redo")),
            ("its export, three times", lambda: export(http, long)),
            ("a backup", lambda: back_up(data, archive)),
        ]  # fmt: skip
        for name, work in works:
            with repeating(http, lambda mine: history.get(mine, path)) as times:
                work()
            table.put("beside", f"a GET beside {name}, p50", "ms", OURS, statistics.median(times))
            table.put("beside", f"a GET beside {name}, p99", "ms", OURS, percentile(times, 0.99))


def export(http: httpx2.Client, session: str) -> None:
    for _ in range(3):
        history.get(http, f"/sessions/{session}/export")


def back_up(data: Path, archive: Path) -> None:
    command = [sys.executable, "-m", "clawdforge", "backup", "--data-dir", str(data), str(archive)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def measure_spare(table: Table, sizes: Sizes, folder: Path) -> None:
    """The first text of a new session."""
    times: dict[str, list[float]] = {how: [] for how in spare.HOW}
    with (
        server(folder / "spare", CLAWDFORGE_LOG_LEVEL="error", CLAWDFORGE_SPARE_AGENTS="1") as (one, _),
        server(folder / "no-spare", CLAWDFORGE_LOG_LEVEL="error", CLAWDFORGE_SPARE_AGENTS="0") as (none, _),
    ):
        for number in range(spare.WARM + (3 if sizes is SHORT else 10)):
            for how, pair in spare.measure(one, none, "scripted").items():
                if number >= spare.WARM:
                    times[how].append(pair[0] * 1e3)
    names = ("a new session, with a spare agent", "a new session, without", "a session whose agent is awake")
    for how, name in zip(spare.HOW, names, strict=True):
        table.put("first-text", f"{name}, p50", "ms", OURS, statistics.median(times[how]))


def measure_imports(table: Table, sizes: Sizes, _folder: Path) -> None:
    for name in ("the blocking client", "the server"):
        cost = imports.measure(imports.IMPORTS[name], 2 if sizes is SHORT else 5)
        table.put("imports", f"CPU: import of {name}", "ms", OURS, cost.processor_secs * 1e3)


def measure_recovery(table: Table, sizes: Sizes, folder: Path) -> None:
    """From kill to ready with a long log and turns cut off."""
    events = 100_000 if sizes is SHORT else 1_000_000
    base = folder / "recovery"
    base.mkdir()
    asyncio.run(recovery.seed(base / "seed", events, 200, 1000))
    empty, after = [], []
    for number in range(1 if sizes is SHORT else 3):
        empty.append(recovery.time_start(base / f"empty{number}", 0)[0])
        shutil.copytree(base / "seed", base / f"data{number}")
        after.append(recovery.time_start(base / f"data{number}", 200)[0])
        shutil.rmtree(base / f"data{number}")
    what = f"ready after a kill, {events:,} events, 200 turns cut off"
    table.put("recovery", what, "s", OURS, statistics.median(after))
    table.put("recovery", "ready with nothing to recover", "s", OURS, statistics.median(empty))


Alone = Callable[[Table, Sizes, Path], None]
ALONE: Final[dict[str, Alone]] = {
    "limits": measure_limits,
    "readers": measure_readers,
    "history": measure_history,
    "beside": measure_beside,
    "first-text": measure_spare,
    "imports": measure_imports,
}
LONG: Final[dict[str, Alone]] = {"recovery": measure_recovery}
