"""Runs one plan from the first start to the last check, through its crashes."""

import logging
import uuid
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from unittest import mock

from clawdforge.stores.sqlite import sets, view
from proofs.simulation import invariants
from proofs.simulation.database import SimDb
from proofs.simulation.life import CANNOT_START, Life
from proofs.simulation.loop import SimLoop
from proofs.simulation.plans import Plan
from proofs.simulation.story import Story
from proofs.simulation.world import Disk, World

MOST_STEPS = 150_000
SLICES = ((sets, "SLICE_ROWS"), (view, "SLICE_ROWS"), (view, "SLICE_BYTES"), (sets, "COPY_ROWS"))


@dataclass
class Outcome:
    """`print` is drawn from everything that chance decided: the same plan gives the same."""

    violations: list[str]
    steps: int
    lives: int
    prompts: int
    fingerprint: str
    struck: int
    trace: list[str] = field(default_factory=list)


def simulate(plan: Plan, db: SimDb, *, traced: bool = False) -> Outcome:
    db.begin()
    world = World(plan, Disk(db), traced=traced)
    story = Story.begin(plan)
    dead: list[SimLoop] = []
    with _quiet(), _slices(plan), mock.patch.object(uuid, "uuid4", world.new_id):
        while not _live(world, story, dead):
            pass
        if not world.violations:
            for words in invariants.check(world, story):
                world.violate(words)
    mark = f"{world.steps}.{world.loop.time():.6f}.{world.chance.getrandbits(32):08x}"
    found, trace = list(world.violations), list(world.trace)
    _bury(dead)
    return Outcome(found, world.steps, len(dead), len(world.heard), mark, len(world.struck), trace)


def _live(world: World, story: Story, dead: list[SimLoop]) -> bool:
    """One life; whether it was the last one. A start may fail, but only when something went wrong in it."""
    loop = world.new_life()
    dead.append(loop)
    faults = len(world.struck)
    crash = next((step for step in world.plan.crashes if step > world.steps), MOST_STEPS) - world.steps

    async def start() -> None:
        await Life(world, story).run()

    main = loop.create_task(start(), name="server")

    def goes_on() -> bool:
        if main.done() or world.violations:
            return False
        return loop.steps < (MOST_STEPS if world.calm else crash)

    loop.run_while(goes_on)
    world.steps += loop.steps
    done = main.done()
    error = main.exception() if done else None
    for words in loop.errors:
        world.violate(f"nobody handled: {words}")
    loop.abandon()
    if isinstance(error, CANNOT_START) and len(world.struck) > faults:
        world.note("the server cannot start")
        return False
    if error is not None:
        world.violate(f"the server ended with {error!r}")
    if not done and not world.violations:
        if world.calm or loop.steps >= MOST_STEPS:
            world.violate(f"no end after {loop.steps} steps")
        else:
            world.note("CRASH")
            return False
    return True


@contextmanager
def _slices(plan: Plan) -> Iterator[None]:
    """In half of all plans every history is a long one, which is changed and copied a row at a time."""
    with ExitStack() as stack:
        if plan.order % 2:
            for module, name in SLICES:
                stack.enter_context(mock.patch.object(module, name, 1))
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """What the product logs about faults that were wanted is no news."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _bury(dead: list[SimLoop]) -> None:
    """What a killed server was doing is thrown away in order, not whenever memory is collected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loop in dead:
            for task in loop.tasks:
                if not task.done():
                    with suppress(BaseException):
                        task.get_coro().close()
            loop.tasks.clear()
