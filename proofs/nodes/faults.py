"""What happens to nodes and to their Postgres in a round, and how long it takes the others to go on."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from clawdforge.stores.postgres.store import PAUSE_PART
from proofs.kit.clock import Clock
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck
from proofs.nodes.database import Database
from proofs.nodes.load import LONG, Load
from proofs.nodes.proxy import Moment, Proxy
from proofs.nodes.pulse import Pulse

LEASE_SECS: Final = 3
STOPPED_SECS: Final = PAUSE_PART * LEASE_SECS
"""After so long Postgres ends the transaction of a node that stopped in the middle of it."""
BACK_SECS: Final = 2.0
"""So long after a lease, or after Postgres is back, everything goes on."""
SLACK_SECS: Final = 2.0
LONGEST_SECS: Final = 60.0
PAUSE: Final = 0.05
NODES_LEFT: Final = 2
"""So many are free when something happens to one of them: another one is left."""
HOUR: Final = 3600
TRIES: Final = 100
MOST_STARTS: Final = 20
NO_DATABASE: Final = "the database cannot be used"
LIVES: Final = "SELECT node FROM members WHERE folder = $1 AND state <> 'dead'"
LIVES_YET: Final = "SELECT 1 FROM members WHERE node = $1 AND state <> 'dead'"
LEFT: Final = (
    "SELECT 1 FROM session_heads JOIN turns USING (session_id)"
    " WHERE holder = $1 AND turns.state IN ('running', 'waiting') LIMIT 1"
)
RUNNING: Final = (
    "SELECT DISTINCT folder FROM members JOIN (SELECT holder FROM session_heads JOIN turns USING (session_id)"
    " WHERE turns.state IN ('running', 'waiting')) AS busy ON holder = node AND members.state <> 'dead'"
)
SPEAKING: Final = (
    "SELECT DISTINCT members.folder FROM members JOIN session_heads ON holder = node"
    " JOIN turns USING (session_id)"
    " WHERE turns.state = 'running' AND members.state <> 'dead' AND prompt LIKE $1"
    " AND (SELECT count(*) FROM events WHERE events.session_id = turns.session_id"
    " AND events.turn = turns.turn_index AND events.type = 'text') BETWEEN 1 AND $2"
)


@dataclass(frozen=True, slots=True)
class Node:
    server: Server
    proxy: Proxy
    clock: Clock

    @property
    def folder(self) -> str:
        return (self.server.data_dir / "folder.id").read_text().strip()


class Faults:
    def __init__(self, run: Run, nodes: Sequence[Node], database: Database, load: Load, pulse: Pulse) -> None:
        self.done: Counter[str] = Counter()
        self.takeovers: defaultdict[str, list[float]] = defaultdict(list)
        """By the way of the trouble: how many seconds after it what a node ran was ended."""
        self.returns: defaultdict[str, list[float]] = defaultdict(list)
        """Likewise how many seconds after it all went on to write."""
        self.late_bytes = 0
        self._run = run
        self._chance = run.random
        self._nodes = nodes
        self._database = database
        self._load = load
        self._pulse = pulse
        self._free = set(nodes)
        self._entrance = asyncio.Lock()
        self._of_nodes: dict[str, Callable[[Node, str], Awaitable[None]]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "stop": self._stop,
            "late": self._late,
            "cut": self._cut,
            "clock": self._set_clock,
        }
        self._of_all: dict[str, Callable[[], Awaitable[None]]] = {
            "inside": self._stop_inside,
            "two": self._do_two,
            "database": self._kill_database,
            "failover": self._fail_over,
        }

    @property
    def ways(self) -> tuple[str, ...]:
        return (*self._of_nodes, *self._of_all)

    async def disturb(self, way: str) -> None:
        """Rounds may overlap: what happens to one node happens beside what happens to another, and a third is
        left. What concerns all of them happens alone."""
        self.done[way] += 1
        async with self._entrance:
            wanted = NODES_LEFT if way in self._of_nodes else len(self._nodes)
            while len(self._free) < wanted:
                await asyncio.sleep(PAUSE)
            node = await self._choose(way) if way in self._of_nodes else None
            taken = set(self._nodes) if node is None else {node}
            self._free -= taken
        try:
            if node is None:
                await self._of_all[way]()
            else:
                await self._of_nodes[way](node, way)
        finally:
            self._free |= taken

    async def _choose(self, way: str) -> Node:
        free = [node for node in self._nodes if node in self._free]
        return await (self._find_speaking(free) if way == "late" else self._find_busy(free))

    async def _find_busy(self, among: Sequence[Node]) -> Node:
        """Rather one that runs something."""
        busy = {row["folder"] for row in await self._database.fetch(RUNNING)}
        return self._chance.choice([node for node in among if node.folder in busy] or among)

    async def _find_speaking(self, among: Sequence[Node]) -> Node:
        """One whose agent has just begun to say something long: it will have sent some of that."""
        while True:
            rows = await self._database.fetch(SPEAKING, f"%:{LONG - 1}", LONG // 3)
            if found := [node for node in among if node.folder in {row["folder"] for row in rows}]:
                return self._chance.choice(found)
            await asyncio.sleep(PAUSE)

    async def _kill(self, node: Node, way: str) -> None:
        name = await self._find_name(node)
        await asyncio.to_thread(node.server.kill)
        await self._take_over(name, way)
        await self._start(node)

    async def _start(self, node: Node) -> None:
        """As whoever runs servers does it: one that finds no database ends, and is started again."""
        for _ in range(MOST_STARTS):
            try:
                await asyncio.to_thread(node.server.start)
            except Stuck as error:
                if NO_DATABASE not in str(error):
                    raise
                await asyncio.sleep(PAUSE)
            else:
                return
        raise Stuck(f"a server found no database in {MOST_STARTS} starts")

    async def _freeze(self, node: Node, way: str) -> None:
        name, began = await self._find_name(node), self._now()
        node.server.freeze()
        await self._take_over(name, way)
        await asyncio.sleep(max(0.0, began + 3 * LEASE_SECS - self._now()))
        node.server.thaw()
        await self._wait_back(node, name)

    async def _stop(self, node: Node, _: str) -> None:
        await asyncio.to_thread(node.server.stop)
        await asyncio.sleep(self._chance.uniform(0, LEASE_SECS))
        await self._start(node)

    async def _late(self, node: Node, way: str) -> None:
        """What it sends is delivered when another has taken over."""
        name = await self._find_name(node)
        node.proxy.hold(Moment.BETWEEN)
        await self._take_over(name, way)
        await self._deliver(node, name)

    async def _cut(self, node: Node, way: str) -> None:
        """Its connections end, and what it has sent is on its way for longer than a lease."""
        name = await self._find_name(node)
        node.proxy.hold(self._chance.choice(list(Moment)))
        await asyncio.sleep(self._chance.uniform(0, 1))
        node.proxy.cut()
        await self._take_over(name, way)
        await self._deliver(node, name)

    async def _stop_inside(self) -> None:
        """A node stops in the middle of a transaction, and nobody can write until Postgres ends that."""
        node = await self._find_busy(self._nodes)
        name = await self._find_name(node)
        await self._freeze_inside(node)
        began = self._now()
        await self._load.make_session([other.server for other in self._nodes if other is not node])
        self._note(self.returns["inside"], began, STOPPED_SECS + BACK_SECS, "a transaction that stopped")
        await self._take_over(name, "inside", STOPPED_SECS)
        node.server.thaw()
        await self._wait_back(node, name)

    async def _freeze_inside(self, node: Node) -> None:
        for _ in range(TRIES):
            while not node.proxy.is_writing():
                await asyncio.sleep(0)
            node.server.freeze()
            await asyncio.sleep(PAUSE)
            if node.proxy.is_writing():
                return
            node.server.thaw()
            await asyncio.sleep(self._chance.uniform(0, PAUSE))
        raise Stuck("no transaction could be stopped in its middle")

    async def _set_clock(self, node: Node, _: str) -> None:
        node.clock.move(self._chance.choice((-HOUR, 0, HOUR)) - node.clock.ahead)
        await asyncio.sleep(1)

    async def _do_two(self) -> None:
        """One of them may be the database's."""
        first, second = self._chance.sample(list(self._nodes), 2)
        ways = self._chance.sample(("kill", "freeze", "stop", "late", "cut", "database"), 2)
        faults = [
            self._restart_database() if way == "database" else self._of_nodes[way](node, "two")
            for way, node in zip(ways, (first, second), strict=True)
        ]
        await asyncio.gather(*faults)

    async def _kill_database(self) -> None:
        await self._restart_database()
        await self._write_again("database")

    async def _restart_database(self) -> None:
        self._database.kill()
        await asyncio.sleep(self._chance.uniform(0, 2))
        self._database.start()
        await self._database.wait_up()

    async def _fail_over(self) -> None:
        await self._database.follow()
        await asyncio.sleep(self._chance.uniform(0, 1))
        self._database.kill()
        await self._database.promote()
        await self._write_again("failover")

    async def _write_again(self, way: str) -> None:
        """Every node can write soon after the database is back."""
        began = self._now()
        for each in asyncio.as_completed([self._load.make_session([node.server]) for node in self._nodes]):
            await each
            self._note(self.returns[way], began, BACK_SECS, "Postgres was back")

    async def _deliver(self, node: Node, name: str) -> None:
        await asyncio.sleep(self._chance.uniform(0, 1))
        self.late_bytes += node.proxy.held
        node.proxy.release()
        await self._wait_back(node, name)

    async def _take_over(self, name: str, way: str, more: float = 0.0) -> None:
        """Until a node is given up by the others, and the turns that it ran are ended."""
        began = self._now()
        had_turns = bool(await self._database.fetch(LEFT, name))
        await self._wait_until(partial(self._is_given_up, name), f"{name} is given up")
        await self._wait_until(partial(self._has_no_turns, name), f"the turns of {name} are ended")
        if had_turns:
            self._note(self.takeovers[way], began, LEASE_SECS + BACK_SECS + more, f"{name} was gone")

    async def _is_given_up(self, name: str) -> bool:
        return not await self._database.fetch(LIVES_YET, name)

    async def _has_no_turns(self, name: str) -> bool:
        return not await self._database.fetch(LEFT, name)

    async def _find_name(self, node: Node) -> str:
        """What the node calls itself now."""
        await self._wait_back(node, "")
        return str((await self._database.fetch(LIVES, node.folder))[-1]["node"])

    async def _wait_back(self, node: Node, old: str) -> None:
        """Until it lives under another name."""

        async def is_back() -> bool:
            return any(row["node"] != old for row in await self._database.fetch(LIVES, node.folder))

        await self._wait_until(is_back, f"{node.server.folder.name} is back")

    async def _wait_until(self, happens: Callable[[], Awaitable[bool]], what: str) -> None:
        end = self._now() + LONGEST_SECS
        while not await happens():
            if self._now() > end:
                raise Stuck(f"within {LONGEST_SECS:g} s it did not happen that {what}")
            await asyncio.sleep(PAUSE)

    def _note(self, into: list[float], began: float, most: float, what: str) -> None:
        """The bound counts where the machine had time for it."""
        took = self._now() - began
        into.append(round(took, 2))
        if self._pulse.was_calm(began):
            self._run.check(took <= most + SLACK_SECS, f"{took:.1f} s after {what} all went on, not {most:g}")

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
