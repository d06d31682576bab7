"""What a job does when it reaches the store, by the rules of the server, and what its node hears of it."""

from typing import Any, Final, NamedTuple, cast

from clawdforge.core.models.events import draft
from clawdforge.core.ports import LeaseLost, Tx
from clawdforge.core.rules.interrupted import adopt
from clawdforge.core.rules.leases import check_lease, give_up, let_go, note_folder
from clawdforge.core.rules.turns import Ending, find_started, finish, start_next
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome, TurnState
from proofs.leases.tx import SESSION, SmallTx
from proofs.leases.world import Job, Kind, Member, World

WORDS: Final = 1
"""Of each turn."""
LOST: Final = "lost"
"""The answer to somebody whose fence is too old."""


class Guards(NamedTuple):
    """What keeps writes apart, which may be switched off."""

    has_fences: bool = True
    has_lock: bool = True


def deliver(world: World, job: Job, guards: Guards) -> tuple[World, Any]:
    """The world after its commit, and the answer."""
    if job.kind in (Kind.JOIN, Kind.BEAT, Kind.DECLARE, Kind.FORGET, Kind.LEAVE):
        return _change_members(world, job)
    tx = SmallTx(world, has_fences=guards.has_fences)
    try:
        answer = _apply(cast("Tx", tx), job)
    except LeaseLost:
        return world, LOST
    return tx.world, answer


def _apply(tx: Tx, job: Job) -> Any:
    match job.kind:
        case Kind.ADOPT:
            adopt(tx, SESSION, job.name, "cut off", 1)
        case Kind.START:
            found = find_started(tx, SESSION, job.name) if job.again else None
            return found or start_next(tx, SESSION, job.name, 1)
        case Kind.NOTE:
            note_folder(tx, SESSION, job.fence)
        case Kind.SAY:
            return _say(tx, job)
        case Kind.END:
            return _end(tx, job)
        case Kind.LET_GO:
            let_go(tx, SESSION, job.name)
        case Kind.GIVE_UP:
            give_up(tx, SESSION, job.name)
    return None


def _say(tx: Tx, job: Job) -> None:
    """As the recorder of a turn does it."""
    check_lease(tx, SESSION, job.fence)
    session = tx.session(SESSION)
    if job.again and session is not None and session.written >= WORDS:
        return
    tx.append(SESSION, [draft(EventType.TEXT, job.turn, 1, {})], fence=job.fence, written=WORDS)


def _end(tx: Tx, job: Job) -> None:
    """Likewise."""
    turn = tx.turn(SESSION, job.turn)
    if turn is None or turn.state is not TurnState.ENDED:
        finish(tx, SESSION, job.turn, Ending(outcome=Outcome.COMPLETED), 1, fence=job.fence)


def _change_members(world: World, job: Job) -> tuple[World, Any]:
    """As the statements in `nodes.sql` do it."""
    members = world.members
    match job.kind:
        case Kind.JOIN:
            folder = folder_of(job.node)
            buried = [one._replace(is_dead=one.is_dead or one.folder == folder) for one in members]
            return world._replace(members=tuple(sorted([*buried, Member(job.name, folder)]))), True
        case Kind.BEAT:
            return (_beat(world, job.name), True) if world.lives(job.name) else (world, False)
        case Kind.DECLARE:
            dead = [one._replace(is_dead=one.is_dead or one.name == job.target) for one in members]
            return world._replace(members=tuple(dead) if job.is_fresh else members), True
        case Kind.FORGET:
            return world._replace(members=tuple(one for one in members if not one.is_dead)), True
        case _:
            return world._replace(members=tuple(one for one in members if one.name != job.name)), True


def _beat(world: World, name: str) -> World:
    """Nobody knows its last beat any more, and who names an older one comes too late."""
    nodes = [
        node._replace(seen=node.seen - {name}, job=node.job and _age(node.job, name)) for node in world.nodes
    ]
    return world._replace(nodes=tuple(nodes), late=tuple(_age(job, name) for job in world.late))


def _age(job: Job, name: str) -> Job:
    is_older = job.kind is Kind.DECLARE and job.target == name
    return job._replace(is_fresh=False) if is_older else job


def folder_of(node: int) -> str:
    return f"folder {node}"
