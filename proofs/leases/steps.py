"""Everything that may happen next in a state of the small world."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from proofs.leases.jobs import LOST, WORDS, Guards, deliver, folder_of
from proofs.leases.world import Job, Kind, Node, Run, World


class Step(NamedTuple):
    """`is_chance`: it need not happen, so nobody may depend on it."""

    what: str
    world: World
    is_chance: bool = False


def find_steps(world: World, guards: Guards) -> Iterator[Step]:
    for index, node in enumerate(world.nodes):
        if not node.name:
            yield Step(f"{index} starts", _join(world, index), is_chance=True)
            continue
        if node.job is not None:
            yield _arrive(world, index, node.job, guards)
        else:
            yield from _act(world, index, node)
        if world.faults:
            yield from _fail(world, index, node, guards)
    for number, job in enumerate(world.late):
        rest = world._replace(late=(*world.late[:number], *world.late[number + 1 :]))
        after, _ = deliver(rest, job, guards)
        yield Step(f"late: {job.kind} of {job.name}", after, is_chance=True)


def _fail(world: World, index: int, node: Node, guards: Guards) -> Iterator[Step]:
    """It is killed, or its connection is lost; its job is written at that moment or never.

    Whoever has begun a transaction has the lock until it is over, so nothing is written in between. Without
    that lock the job would be on its way for as long as it likes.
    """
    world = world._replace(faults=world.faults - 1)
    job = node.job
    lost = [(world, "")]
    if job is not None and guards.has_lock:
        lost.append((deliver(world, job, guards)[0], f", its {job.kind} is written"))
    elif job is not None:
        lost.append((world._replace(late=tuple(sorted((*world.late, job)))), f", its {job.kind} is late"))
    for after, what in lost:
        yield Step(f"{index} is killed{what}", _replace_node(after, index, Node()), is_chance=True)
        if job is not None:
            yield Step(f"{index} is cut off{what}", _cut(after, index, job), is_chance=True)


def _act(world: World, index: int, node: Node) -> Iterator[Step]:
    """What a node that waits for nothing may do."""
    if not node.is_member:
        yield Step(f"{index} joins again", _join(world, index))
        return
    others = frozenset(one.name for one in world.members if not one.is_dead) - {node.name}
    if node.seen != others:
        yield Step(f"{index} looks at the beats", _put(world, index, seen=others))
    for job, what in _find_jobs(world, index, node):
        is_false = job.kind is Kind.DECLARE and any(one.name == job.target for one in world.nodes)
        costs = is_false or job.kind is Kind.LEAVE
        if world.faults >= costs:
            sent = _put(world, index, job=job)
            yield Step(what, sent._replace(faults=world.faults - costs), is_chance=costs)


def _find_jobs(world: World, index: int, node: Node) -> Iterator[tuple[Job, str]]:
    def make(kind: Kind, **more: Any) -> tuple[Job, str]:
        return Job(kind, index, node.name, **more), f"{index}: {kind}"

    is_watched = any(node.name in one.seen for one in world.nodes)
    is_named = any(one.job is not None and one.job.target == node.name for one in world.nodes)
    is_named = is_named or any(job.target == node.name for job in world.late)
    if is_watched or is_named or not world.lives(node.name):
        yield make(Kind.BEAT)
    for target in sorted(node.seen):
        if world.lives(target):
            yield make(Kind.DECLARE, target=target)
    is_left = world.holder is not None and not world.lives(world.holder)
    if is_left and any(turn.state == "running" for turn in world.turns):
        yield make(Kind.ADOPT)
    elif any(one.is_dead for one in world.members):
        yield make(Kind.FORGET)
    if node.run is None:
        if node.in_doubt or any(turn.state == "queued" for turn in world.turns):
            yield make(Kind.START, again=node.in_doubt)
        if world.holder == node.name:
            yield make(Kind.LET_GO)
            if world.folder is not None and world.find_node(world.folder) not in (None, node.name):
                yield make(Kind.GIVE_UP)
        yield make(Kind.LEAVE)
        return
    run = {"turn": node.run.turn, "fence": node.run.fence}
    if world.folder not in (None, folder_of(index)):  # before there is an agent
        yield make(Kind.NOTE, **run)
        return
    yield make(Kind.SAY if node.run.said < WORDS else Kind.END, **run, again=node.in_doubt)


def _arrive(world: World, index: int, job: Job, guards: Guards) -> Step:
    """A job reaches the store, and its answer the node."""
    after, answer = deliver(_put(world, index, job=None), job, guards)
    is_refused = answer is False or answer == LOST
    what = f"{index}: {job.kind} is {'refused' if is_refused else 'written'}"
    return Step(what, _hear(after, index, job, answer))


def _hear(world: World, index: int, job: Job, answer: Any) -> World:
    """What the node makes of the answer."""
    run = world.nodes[index].run
    if job.kind is Kind.JOIN:
        return _put(world, index, is_member=True)
    if job.kind is Kind.BEAT and not answer:  # it ends its agents, and goes on by another name
        return _join(world, index)
    if job.kind is Kind.LEAVE:
        return _replace_node(world, index, Node())
    if answer == LOST or job.kind is Kind.END:
        return _put(world, index, run=None, in_doubt=False)
    if job.kind is Kind.START:
        run = None if answer is None else Run(answer.turn.turn_index, answer.fence)
    elif job.kind is Kind.SAY and run is not None:
        run = run._replace(said=WORDS)
    is_told = job.kind in (Kind.START, Kind.SAY)
    return _put(world, index, run=run, in_doubt=world.nodes[index].in_doubt and not is_told)


def _join(world: World, index: int) -> World:
    name = f"n{world.names}"
    node = Node(name, job=Job(Kind.JOIN, index, name))
    return _replace_node(world._replace(names=world.names + 1), index, node)


def _cut(world: World, index: int, job: Job) -> World:
    """The node does not know whether its job was written."""
    if job.kind is Kind.LEAVE:  # it ends all the same
        return _replace_node(world, index, Node())
    in_doubt = world.nodes[index].in_doubt or job.kind in (Kind.START, Kind.SAY, Kind.END)
    return _put(world, index, job=None, in_doubt=in_doubt)


def _put(world: World, index: int, **changes: Any) -> World:
    return _replace_node(world, index, world.nodes[index]._replace(**changes))


def _replace_node(world: World, index: int, node: Node) -> World:
    return world._replace(nodes=(*world.nodes[:index], node, *world.nodes[index + 1 :]))
