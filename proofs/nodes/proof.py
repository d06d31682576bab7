"""Nodes: three servers share a Postgres; all are killed, frozen and cut off, and no session is torn."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from proofs.kit.clock import Clock
from proofs.kit.report import Run
from proofs.kit.server import Server, zygote
from proofs.nodes.checks import check_heard, check_log, check_reader
from proofs.nodes.database import NAME, Database, run_database
from proofs.nodes.faults import LEASE_SECS, Faults, Node
from proofs.nodes.load import Load, Talk
from proofs.nodes.proxy import Proxy
from proofs.nodes.pulse import Pulse

SHORT, FULL = 20, 200
"""Rounds: in each, something happens."""
AT_ONCE: Final = 2
"""Rounds of the short form that overlap where they may, since most of a round is a wait for a lease."""
NODES: Final = 3
STRAY_SECS: Final = 15.0
PAUSE: Final = 0.05
HELD: Final = "SELECT session_id, members.folder FROM session_heads JOIN members ON holder = node"
TAG: Final = re.compile(r"(?:^|\0)CLAWDFORGE_TAG=[^:\0]*:[^:\0]*:([^:\0]*):")


def prove(run: Run) -> None:
    with ExitStack() as stack:
        database = stack.enter_context(run_database())
        made = stack.enter_context(zygote(run.source))
        clocks = [Clock(run.folder / f"clock{number}") for number in range(NODES)]
        servers = [
            stack.enter_context(Server(run.folder / f"n{number}", made, source=run.source, clock=clock.path))
            for number, clock in enumerate(clocks)
        ]
        asyncio.run(_prove(run, database, servers, clocks))
        left = [pid for server in servers for pid in server.agents()]
        run.check(not left, f"agents live on without their nodes: {left}")


async def _prove(run: Run, database: Database, servers: list[Server], clocks: list[Clock]) -> None:
    await database.make()
    pulse = Pulse()
    proxies = [Proxy(lambda: database.socket) for _ in servers]
    try:
        for server, proxy in zip(servers, proxies, strict=True):
            await proxy.open()
            server.env |= {
                "CLAWDFORGE_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{proxy.port}/{NAME}?sslmode=disable",
                "CLAWDFORGE_LEASE_SECS": str(LEASE_SECS),
                "CLAWDFORGE_STOP_GRACE_SECS": "1",
            }
        await asyncio.to_thread(servers[0].start)  # it makes the tables
        await asyncio.gather(*(asyncio.to_thread(server.start) for server in servers[1:]))
        nodes = [Node(*parts) for parts in zip(servers, proxies, clocks, strict=True)]
        await _play(run, database, nodes, pulse)
        await asyncio.gather(*(asyncio.to_thread(server.stop) for server in servers))
    finally:
        for proxy in proxies:
            await proxy.close()
        await database.close()
        await pulse.close()


async def _play(run: Run, database: Database, nodes: list[Node], pulse: Pulse) -> None:
    servers = [node.server for node in nodes]
    load = Load(run, servers, await asyncio.to_thread(servers[0].token))
    faults = Faults(run, nodes, database, load, pulse)
    await load.start()
    try:
        rounds = enumerate(islice(_ways(run, faults), run.size))
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE if run.short else 1):
                group.create_task(_disturb(run, database, nodes, faults, rounds))
        await load.finish()
        outcomes: Counter[str] = Counter()
        for talk in load.talks:
            outcomes.update(await _check_talk(run, load, servers, talk))
        _tell(run, "", check_heard(load.talks, [server.witness for server in servers]))
        await _check_strays(run, database, nodes, "at rest")
    finally:
        await load.close()
    turns = outcomes.total()
    run.check(outcomes["completed"] >= turns / 3 > 0, f"of {turns} turns too few were completed: {outcomes}")
    run.figure(
        turns=turns,
        **outcomes,
        events=sum(len(talk.seen) for talk in load.talks),
        rounds=", ".join(f"{way} {count}" for way, count in sorted(faults.done.items())),
        late_bytes=faults.late_bytes,
        lease_secs=LEASE_SECS,
        **_tell_times("takeover_secs", faults.takeovers),
        **_tell_times("writing_again_secs", faults.returns),
        **load.done,
    )


async def _disturb(
    run: Run, database: Database, nodes: list[Node], faults: Faults, rounds: Iterator[tuple[int, str]]
) -> None:
    for number, way in rounds:
        await asyncio.sleep(run.random.uniform(0.5, 1.5))
        run.progress(f"{number + 1} of {run.size} rounds: {way}")
        await faults.disturb(way)
        await _check_strays(run, database, nodes, f"round {number + 1}, {way}")


def _ways(run: Run, faults: Faults) -> Iterable[str]:
    """Each way once before any comes again, in an order of chance; of those that were named, if any were."""
    ways = [way for way in faults.ways if not run.only or way in run.only]
    if not ways:
        raise ValueError(f"there is no way {run.only}; there are {faults.ways}")
    while True:
        yield from run.random.sample(ways, len(ways))


async def _check_talk(run: Run, load: Load, servers: list[Server], talk: Talk) -> list[str]:
    """How its turns ended."""
    await load.wait_ended(talk)
    logs = [await load.log(server, talk.session) for server in servers]
    run.check(all(log == logs[0] for log in logs), f"{talk.session}: nodes tell different logs")
    events = logs[0]
    _tell(run, talk.session, check_log(talk, events))
    await load.wait_read(talk, len(events))
    _tell(run, talk.session, check_reader(talk, events))
    return [event["outcome"] for event in events if event["type"] == "turn.ended"]


def _tell(run: Run, session: str, violations: Iterable[str]) -> None:
    for words in violations:
        run.violate(f"{session}: {words}")


async def _check_strays(run: Run, database: Database, nodes: list[Node], when: str) -> None:
    """No agent lives at a node that does not hold its session. One that lost it needs a moment to notice."""
    end = asyncio.get_running_loop().time() + STRAY_SECS
    strays = await _find_strays(database, nodes)
    while strays and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(PAUSE)
        strays &= await _find_strays(database, nodes)
    run.check(not strays, f"{when}: agents live where their sessions are not held: {strays}")


async def _find_strays(database: Database, nodes: list[Node]) -> set[str]:
    agents = {(pid, session, node) for node in nodes for pid, session in _find_agents(node)}
    held = {tuple(row) for row in await database.fetch(HELD)}
    return {
        f"{session} at {node.server.folder.name}, process {pid}"
        for pid, session, node in agents
        if (session, node.folder) not in held
    }


def _find_agents(node: Node) -> list[tuple[int, str]]:
    """Processes of agents at a node, each with its session, which stands in what it was started with."""
    found = []
    for pid in node.server.agents():
        with suppress(OSError):
            started_with = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
            found += [(pid, session) for session in TAG.findall(started_with)]
    return found


def _tell_times(what: str, times: Mapping[str, list[float]]) -> dict[str, str]:
    """For each way by itself: the middle and the longest."""
    return {
        f"{what}_{way}": f"{sorted(found)[len(found) // 2]:g}, at most {max(found):g}"
        for way, found in sorted(times.items())
    }
