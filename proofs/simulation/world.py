"""The world around the simulated server: what survives a crash, what goes wrong when, and what was seen."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

from clawdforge.core.clock import SECOND
from clawdforge.wire.base import Micros
from proofs.simulation.database import EPOCH, SimDb
from proofs.simulation.loop import SimLoop
from proofs.simulation.plans import Fault, Plan

SLOW_SECS = (2.0, 12.0)  # less than the pool waits for an agent that ends
Memory = dict[str, list[str]]
"""What an agent's home holds: the prompts that it heard, by its own session."""


@dataclass
class Disk:
    """What a crash leaves: the database, homes and their copies, and the recorded workspaces."""

    db: SimDb
    homes: dict[str, Memory] = field(default_factory=dict)
    copies: dict[str, dict[int, tuple[str, Memory]]] = field(default_factory=dict)
    trees: dict[str, dict[int, str]] = field(default_factory=dict)


class World:
    """`note` keeps a trace where one is wanted; the same plan gives the same trace."""

    def __init__(self, plan: Plan, disk: Disk, *, traced: bool = False) -> None:
        self.plan = plan
        self.disk = disk
        self.chance = random.Random(plan.order)
        self.loop = SimLoop(self.chance, plan.shuffle, 0.0)
        self.steps = 0
        self.calm = False
        self.violations: list[str] = []
        self.trace: list[str] = []
        self.struck: list[Fault] = []
        self.heard: Counter[str] = Counter()
        self.living: dict[str, list[object]] = {}  # agents that live in the home of a session
        self._traced = traced
        self._faults = frozenset((fault.kind, fault.nth) for fault in plan.faults)
        self._moments: Counter[str] = Counter()
        self._at_work: dict[str, list[str]] = {}
        self._ids = 0

    def now(self) -> Micros:
        """The clock of the product."""
        return round((EPOCH + self.loop.time()) * SECOND)

    def steady(self) -> Micros:
        """The clock that nobody can set."""
        return round(self.loop.time() * SECOND)

    def new_life(self) -> SimLoop:
        """The loop of the next server; agents do not survive the one before."""
        self.loop = SimLoop(self.chance, self.plan.shuffle, self.loop.time())
        self.loop.draw_work = self.draw_delay
        self.living.clear()
        self._at_work.clear()
        return self.loop

    def new_id(self) -> str:
        self._ids += 1
        return f"id{self._ids:04}-{self.chance.getrandbits(24):06x}"

    def note(self, *words: object) -> None:
        if self._traced:
            text = " ".join(map(str, words))
            self.trace.append(f"{self.loop.time():9.3f} s, step {self.steps + self.loop.steps:5}: {text}")

    def violate(self, words: str) -> None:
        self.note("VIOLATION", words)
        self.violations.append(words)

    def strikes(self, kind: str) -> bool:
        """Whether this moment is one that the plan wants to go wrong."""
        if self.calm:
            return False
        self._moments[kind] += 1
        hit = (kind, self._moments[kind]) in self._faults
        if hit:
            self.struck.append(Fault(kind, self._moments[kind]))
            self.note("FAULT", kind)
        return hit

    def has_struck(self, *kinds: str) -> bool:
        """Whether something of these kinds has gone wrong so far."""
        return any(fault.kind in kinds for fault in self.struck)

    def draw_delay(self) -> float:
        """How long something outside takes: mostly little, sometimes much longer than anything else."""
        dice = self.chance.random()
        if self.strikes("slow"):
            return self.chance.uniform(*SLOW_SECS)
        if dice < 0.3:
            return 0.0
        if dice < 0.93:
            return dice * 2 * self.plan.pace
        return self.chance.uniform(0.02, 0.5)

    async def pause(self) -> None:
        """A wait for something outside; it may also be over at once, without others having their turn."""
        if self.chance.random() < 0.7:
            await asyncio.sleep(self.draw_delay())

    def prolong(self) -> None:
        """The work that a thread is doing takes long: whatever fails tends to."""
        if self.loop.job is not None:
            self.loop.job.takes = self.chance.uniform(0.05, 2.0)

    def occupy(self, place: str, what: str) -> None:
        """A thread works on files from now until its job ends; two at once would spoil them."""
        others = self._at_work.setdefault(place, [])
        if others:
            self.violate(f"{what} while there is {others[0]} at the same files")
        others.append(what)
        if self.loop.job is None:
            others.remove(what)
        else:
            self.loop.job.on_end.append(lambda: others.remove(what))
