"""Rows that every contender can have: each is done by all of them in turn, in blocks of one run."""

import asyncio
import re
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.beside import PAUSE_SECS, SETTLED_SECS
from bench.contenders import Contender, Entrant
from bench.plain import Connection
from bench.table import Table

STAMP: Final = re.compile(rb"<(\d{6,})>")
BLOCK_SECS: Final = 1.5
"""A block ends after this, however slow its server is."""
LEAST: Final = 2
MANY_SECS: Final = 40.0
AGAIN_SECS: Final = 10.0
"""Who would take longer than the one is not asked, and who took longer than the other is not asked again."""
PILOT: Final = 300
MOST_CHUNKS: Final = 100_000


@dataclass(frozen=True)
class Sizes:
    """How much of everything; the short form shows that it works."""

    blocks: int = 5
    turns: int = 20
    starts: int = 2
    many: tuple[tuple[int, int], ...] = ((50, 3), (200, 1), (500, 1))
    """So many at once, in so many rounds."""
    sessions: int = 50
    rate_secs: float = 3.0
    rate_blocks: int = 2
    chunk_blocks: int = 3
    chunk_secs: float = 2.0
    stamps: int = 60
    kept_turns: int = 100
    kept_chunks: int = 4000


SHORT: Final = Sizes(
    blocks=2, turns=5, starts=1, many=((20, 1),), sessions=10, rate_secs=1.0, rate_blocks=1,
    chunk_blocks=1, chunk_secs=0.5, stamps=10, kept_turns=20, kept_chunks=500,
)  # fmt: skip


def alternate(contenders: Sequence[Contender], block: int, row: str) -> list[Contender]:
    """Those that have the row; the first of one block is the last of the next."""
    found = [one for one in contenders if row in one.does]
    return found[::-1] if block % 2 else found


async def measure_turns(table: Table, sizes: Sizes, contenders: Sequence[Contender]) -> None:
    """One session each, one turn after another: with a pause in between, and without."""
    paced: dict[str, list[float]] = {}
    close: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    whole: dict[str, list[float]] = {}
    desks = {one.name: await open_desk(one) for one in alternate(contenders, 0, "turn")}
    for block in range(sizes.blocks):
        for one in alternate(contenders, block, "turn"):
            desk = desks[one.name]
            before, before_all = one.cpu(), one.cpu_of_all()
            times = await run_turns(desk, sizes.turns, PAUSE_SECS)
            await asyncio.sleep(SETTLED_SECS)
            cpu.setdefault(one.name, []).append((one.cpu() - before) / len(times) * 1e3)
            whole.setdefault(one.name, []).append((one.cpu_of_all() - before_all) / len(times) * 1e3)
            paced.setdefault(one.name, []).extend(times)
            close.setdefault(one.name, []).extend(await run_turns(desk, sizes.turns, 0.0))
            await asyncio.sleep(SETTLED_SECS)
    for name in desks:
        table.put(
            "turn", "a turn, with a pause before the next, p50", "ms", name, statistics.median(paced[name])
        )
        table.put("turn", "the same, p95", "ms", name, percentile(paced[name], 0.95))
        table.put(
            "turn", "a turn directly after the one before, p50", "ms", name, statistics.median(close[name])
        )
        table.put("turn", "CPU of the server for a turn", "ms", name, statistics.median(cpu[name]))
        table.put(
            "turn",
            "CPU with the processes of agents and of a database",
            "ms",
            name,
            statistics.median(whole[name]),
        )
    await close_desks(desks)


async def measure_many(table: Table, sizes: Sizes, contenders: Sequence[Contender]) -> None:
    """Turns of one second at once: in sessions that are awake, and in new ones."""
    last: dict[str, tuple[int, float]] = {}
    for count, rounds in sizes.many:
        warm: dict[str, list[float]] = {}
        fresh: dict[str, list[float]] = {}
        slowest: dict[str, tuple[int, float]] = {}
        for number in range(rounds):
            for one in alternate(contenders, number, "many"):
                if is_too_slow(table, one, count, last) or slowest.get(one.name, (0, 0.0))[1] > AGAIN_SECS:
                    continue
                open_ = [await one.connect() for _ in range(count)]
                desks = await asyncio.gather(*(start_turn(one, link, "echo hello") for link in open_[:LEAST]))
                await forget(one, open_[0], desks)  # whatever is made known by the first turns
                begun = time.perf_counter()
                made = await asyncio.gather(*(start_turn(one, link, "sleep 1") for link in open_))
                took = time.perf_counter() - begun
                fresh.setdefault(one.name, []).append(took)
                slowest[one.name] = (count, took)
                begun = time.perf_counter()
                turns = [
                    link.ask(one.dialect.turn(session, "sleep 1"))
                    for link, session in zip(open_, made, strict=True)
                ]
                await asyncio.gather(*turns)
                warm.setdefault(one.name, []).append(time.perf_counter() - begun)
                await forget(one, open_[0], made)
                for link in open_:
                    link.close()
        last |= slowest
        for how, found in (("awake", warm), ("new", fresh)):
            for name, secs in found.items():
                what = f"{count} turns of one second at once, sessions {how}"
                table.put("many", what, "s", name, statistics.median(secs))


def is_too_slow(table: Table, one: Contender, count: int, last: Mapping[str, tuple[int, float]]) -> bool:
    """Whether so many would take minutes, by what fewer of them took."""
    fewer, took = last.get(one.name, (count, 0.0))
    if fewer == count or took * count / fewer < MANY_SECS:
        return False
    reason = f"{fewer} took {took:.0f} s"
    table.left_out.setdefault(f"{one.name}: {count} turns at once", reason)
    return True


async def measure_rate(table: Table, sizes: Sizes, contenders: Sequence[Contender]) -> None:
    """Many sessions, each with one turn after another."""
    rates: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    for block in range(sizes.rate_blocks):
        for one in alternate(contenders, block, "rate"):
            desks = [await open_desk(one) for _ in range(sizes.sessions)]
            before, begun = one.cpu(), time.perf_counter()
            end = begun + sizes.rate_secs
            counts = await asyncio.gather(*(run_until(desk, end) for desk in desks))
            took, total = time.perf_counter() - begun, sum(counts)
            rates.setdefault(one.name, []).append(total / took)
            cpu.setdefault(one.name, []).append((one.cpu() - before) / total * 1e3)
            await close_desks(dict(enumerate(desks)))
    for name, found in rates.items():
        what = f"turns in {sizes.sessions} sessions"
        table.put("rate", what, "/s", name, statistics.median(found))
        table.put("rate", "CPU of the server for one of them", "ms", name, statistics.median(cpu[name]))


async def measure_chunks(table: Table, sizes: Sizes, contenders: Sequence[Contender]) -> None:
    """A long answer to one reader; as many chunks as a server says in about the same time."""
    rates: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    lengths: dict[str, int] = {}
    for block in range(sizes.chunk_blocks):
        for one in alternate(contenders, block, "chunks"):
            desk = await open_desk(one)
            if one.name not in lengths:
                rate = await stream_chunks(desk, PILOT)
                lengths[one.name] = int(min(max(rate * sizes.chunk_secs, PILOT), MOST_CHUNKS))
            before, count = one.cpu(), lengths[one.name]
            rates.setdefault(one.name, []).append(await stream_chunks(desk, count))
            await asyncio.sleep(SETTLED_SECS)
            cpu.setdefault(one.name, []).append((one.cpu() - before) / count * 1e6)
            await close_desks({0: desk})
    for name, found in rates.items():
        table.put("chunks", "chunks from the agent to a reader", "/s", name, statistics.median(found))
        table.put("chunks", "CPU of the server for a chunk", "µs", name, statistics.median(cpu[name]))


async def measure_delay(table: Table, sizes: Sizes, contenders: Sequence[Contender]) -> None:
    """From the agent's write to the reader, some milliseconds apart; both read the same clock."""
    waits: dict[str, list[float]] = {}
    for block in range(2):
        for one in alternate(contenders, block, "delay"):
            desk = await open_desk(one, stamping=True)
            waits.setdefault(one.name, []).extend(await read_stamps(desk, sizes.stamps))
            await close_desks({0: desk})
    for name, found in waits.items():
        table.put("delay", "from the agent's write to the reader, p50", "ms", name, statistics.median(found))
        table.put("delay", "the same, p95", "ms", name, percentile(found, 0.95))


async def measure_starts(table: Table, sizes: Sizes, folder: Path, entrants: Sequence[Entrant]) -> None:
    """From the start of the process to its first answer, the first turn of all, and what it then holds."""
    ready: dict[str, list[float]] = {}
    first: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    for number in range(sizes.starts):
        for entrant in entrants[:: -1 if number % 2 else 1]:
            with ExitStack() as stack:
                begun = time.perf_counter()
                one = stack.enter_context(entrant.run(folder / f"start-{entrant.name}-{number}"))
                if "start" not in one.does:
                    continue
                ready.setdefault(one.name, []).append(time.perf_counter() - begun - one.preparing)
                begun = time.perf_counter()
                desk = await open_desk(one)
                first.setdefault(one.name, []).append((time.perf_counter() - begun) * 1e3)
                memory.setdefault(one.name, []).append(one.memory())
                await close_desks({0: desk})
    for name, found in ready.items():
        table.put("start", "ready after the start", "s", name, statistics.median(found))
        table.put("start", "a first session and its first turn", "ms", name, statistics.median(first[name]))
        table.put("start", "memory after it", "MB", name, statistics.median(memory[name]))


async def measure_disk(table: Table, sizes: Sizes, folder: Path, entrants: Sequence[Entrant]) -> None:
    """What lies in the server's folder after it has ended, and what it had written until then."""
    for entrant in entrants:
        found = []
        for number, prompts in enumerate(
            [[], ["echo hello"] * sizes.kept_turns, [f"chunks {sizes.kept_chunks}"]]
        ):
            place = folder / f"disk-{entrant.name}-{number}"
            with entrant.run(place) as one:
                if "disk" not in one.does:
                    break
                desk = await open_desk(one)
                before = written(one)
                for prompt in prompts:
                    async for _ in await desk.link.stream(one.dialect.stream(desk.session, prompt)):
                        pass
                await asyncio.sleep(SETTLED_SECS)
                wrote = written(one) - before
                desk.link.close()
            found.append((room(one.folder), wrote))
        if len(found) < 3:
            continue
        empty, turns, chunks = found
        count, pieces = sizes.kept_turns, sizes.kept_chunks
        name = entrant.name
        table.put("disk", "kept of a turn, in bytes", "B", name, (turns[0] - empty[0]) / count)
        table.put("disk", "written for a turn by the server's first process", "B", name, turns[1] / count)
        table.put("disk", "kept of a chunk", "B", name, (chunks[0] - empty[0]) / pieces)
        table.put("disk", "written for a chunk by the server's first process", "B", name, chunks[1] / pieces)


@dataclass
class Desk:
    """A session of a contender and a connection of its own."""

    one: Contender
    link: Connection
    session: str


async def open_desk(one: Contender, *, stamping: bool = False) -> Desk:
    """Its first turn has been."""
    link = await one.connect()
    session = one.dialect.read_session(await link.ask(one.dialect.make(stamping=stamping)))
    await link.ask(one.dialect.turn(session, "echo hello"))
    return Desk(one, link, session)


async def close_desks(desks: "dict[str, Desk] | dict[int, Desk]") -> None:
    for desk in desks.values():
        await forget(desk.one, desk.link, [desk.session])
        desk.link.close()


async def forget(one: Contender, link: Connection, sessions: Sequence[str]) -> None:
    for session in sessions:
        if (request := one.dialect.remove(session)) is not None:
            await link.ask(request)


async def start_turn(one: Contender, link: Connection, prompt: str) -> str:
    session = one.dialect.read_session(await link.ask(one.dialect.make()))
    await link.ask(one.dialect.turn(session, prompt))
    return session


async def run_turns(desk: Desk, count: int, pause: float) -> list[float]:
    """Milliseconds of each; fewer of them where they take long."""
    times: list[float] = []
    end = time.perf_counter() + BLOCK_SECS
    while len(times) < count and (len(times) < LEAST or time.perf_counter() < end):
        await asyncio.sleep(pause)
        begun = time.perf_counter()
        await desk.link.ask(desk.one.dialect.turn(desk.session, "echo hello"))
        times.append((time.perf_counter() - begun) * 1e3)
    return times


async def run_until(desk: Desk, end: float) -> int:
    count = 0
    while count == 0 or time.perf_counter() < end:
        await desk.link.ask(desk.one.dialect.turn(desk.session, "echo hello"))
        count += 1
    return count


async def stream_chunks(desk: Desk, count: int) -> float:
    """Chunks a second, from the prompt to the last of them: all may come in one piece."""
    mark, tail, seen = desk.one.dialect.mark, b"", 0
    begun = ended = time.perf_counter()
    async for piece in await desk.link.stream(desk.one.dialect.stream(desk.session, f"chunks {count}")):
        text = tail + piece
        if found := text.count(mark):
            ended = time.perf_counter()
        seen += found
        tail = text[-len(mark) + 1 :]
    assert seen == count, f"{desk.one.name} sent {seen} of {count} chunks"
    return count / (ended - begun)


async def read_stamps(desk: Desk, count: int, pause_ms: int = 20) -> list[float]:
    waits: list[float] = []
    request = desk.one.dialect.stream(desk.session, f"stamps {count} {pause_ms}")
    seen: set[bytes] = set()
    async for piece in await desk.link.stream(request):
        now = time.monotonic_ns()
        for stamp in STAMP.findall(piece):
            if stamp not in seen:  # a whole answer at the end says them all again
                waits.append((now - int(stamp)) / 1e6)
                seen.add(stamp)
    assert len(waits) == count, f"{desk.one.name} sent {len(waits)} of {count} stamps"
    return waits


def written(one: Contender) -> int:
    """Bytes that this process has handed to the disk: not those of agents that run, and of a database."""
    lines = Path(f"/proc/{one.pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def room(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


Contest = Callable[[Table, Sizes, Sequence[Contender]], Awaitable[None]]
CONTESTS: Final[dict[str, Contest]] = {
    "turn": measure_turns,
    "many": measure_many,
    "rate": measure_rate,
    "chunks": measure_chunks,
    "delay": measure_delay,
}
Series = Callable[[Table, Sizes, Path, Sequence[Entrant]], Awaitable[None]]
SERIES: Final[dict[str, Series]] = {"start": measure_starts, "disk": measure_disk}
"""These start servers themselves."""
