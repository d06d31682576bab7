"""Leases: all orders in which nodes may write, be cut off, be given up and die, by the rules themselves."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from proofs.kit.report import Run
from proofs.leases.jobs import Guards, folder_of
from proofs.leases.steps import find_steps
from proofs.leases.world import Kind, Member, Node, Turn, Violation, World

SHORT, FULL = 1, 2
"""How many faults there are: a kill, a lost connection, a stop, a node that is given up by mistake."""
TURNS: Final = 2
NODES: Final = 2


@dataclass
class Found:
    """All states that can be reached, each with the one before it; a violation ends the search."""

    before: dict[World, tuple[World, str] | None] = field(default_factory=dict)
    steps: int = 0
    violation: str = ""
    stuck: World | None = None

    def tell_way(self, world: World) -> str:
        """What happened until this state."""
        parts: list[str] = []
        while (last := self.before[world]) is not None:
            world, what = last
            parts.append(what)
        return "; ".join(reversed(parts))


def prove(run: Run) -> None:
    states, steps = 0, 0
    for folder in (None, folder_of(0)):
        found = explore(make_world(run.size, folder), Guards())
        states, steps = states + len(found.before), steps + found.steps
        run.check(not found.violation, found.violation)
        if found.stuck is not None:
            run.violate(f"a session waits for ever after: {found.tell_way(found.stuck)}; {found.stuck}")
        run.progress(f"{states} states", 0)
    without = {
        "fences": explore(make_world(1), Guards(has_fences=False)),
        "lock": explore(make_world(1), Guards(has_lock=False)),
    }
    for name, found in without.items():
        run.check(bool(found.violation), f"without the {name} nothing is found, so the model sees nothing")
    run.figure(faults=run.size, states=states, steps=steps)
    run.figure(**{f"without_{name}": found.violation for name, found in without.items()})


def make_world(faults: int, folder: str | None = None, nodes: int = NODES, turns: int = TURNS) -> World:
    names = [f"n{number}" for number in range(nodes)]
    return World(
        nodes=tuple(Node(name, is_member=True) for name in names),
        turns=(Turn(),) * turns,
        faults=faults,
        folder=folder,
        members=tuple(Member(name, folder_of(number)) for number, name in enumerate(names)),
        names=nodes,
    )


def explore(first: World, guards: Guards) -> Found:
    """Breadth first, so that what is found is as short as can be."""
    found = Found({first: None})
    sure: dict[World, list[World]] = {}  # by where they lead: steps that happen if nothing else does
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        try:
            steps = list(find_steps(world, guards))
        except Violation as error:
            found.violation = f"{error}, after: {found.tell_way(world)}"
            return found
        found.steps += len(steps)
        for step in steps:
            if not step.is_chance:
                sure.setdefault(step.world, []).append(world)
            if step.world not in found.before:
                found.before[step.world] = (world, step.what)
                waiting.append(step.world)
    found.stuck = _find_stuck(found, sure)
    return found


def _find_stuck(found: Found, sure: dict[World, list[World]]) -> World | None:
    """A state with a living node from which its turns do not end, whatever the nodes do."""
    good = {world for world in found.before if world.is_done}
    waiting = list(good)
    while waiting:
        for world in sure.get(waiting.pop(), ()):
            if world not in good:
                good.add(world)
                waiting.append(world)
    return next((one for one in found.before if one not in good and any(map(_goes_on, one.nodes))), None)


def _goes_on(node: Node) -> bool:
    """Whether it is there, and is not about to end."""
    return bool(node.name) and (node.job is None or node.job.kind is not Kind.LEAVE)
