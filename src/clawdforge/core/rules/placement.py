"""Which node runs a session that nobody holds: one that has its agent, offers its folder, and has room.

Each node knows by itself what it has. Of a turn that waits and that it cannot run, it says so with its beats:
so everybody finds out when nobody can, and whoever does ends the turn with a sentence about that.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from zlib import crc32

from clawdforge.core.models.blobs import PublicationRow
from clawdforge.core.models.nodes import Telling
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.memory import read_recent_turns
from clawdforge.wire.base import Micros
from clawdforge.wire.turn import Outcome


class Lack(StrEnum):
    """Why a node cannot run a session."""

    AGENT = "agent"
    FOLDER = "folder"


def name_turn(session_id: str, turn_index: int) -> str:
    """A turn that waits, as nodes tell each other of it."""
    return f"{session_id}:{turn_index}"


def choose(session_id: str, nodes: Sequence[str]) -> str | None:
    """One of several, for the same session always the same one."""
    return nodes[crc32(session_id.encode()) % len(nodes)] if nodes else None


def find_able(others: Mapping[str, Telling], agent: str, turn: str) -> list[str]:
    """The nodes that may be able to run a turn: those that do not say otherwise, the new ones among them."""
    return [
        node
        for node, tells in others.items()
        if turn not in tells.cannot and (tells.usable is None or agent in tells.usable)
    ]


def find_room(others: Mapping[str, Telling], agent: str) -> list[str]:
    """The nodes that say that they have the agent, and a place for it."""
    return [
        node
        for node, tells in others.items()
        if tells.free > 0 and tells.usable is not None and agent in tells.usable
    ]


def can_move(view: View, session: SessionRow) -> bool:
    """Whether another node can have the session's own workspace: published, or still as at first."""
    published = view.publication(session.session_id)
    return not has_done_work(view, session) if published is None else published.workspace is not None


def note_empty(tx: Tx, session_id: str, at: Micros) -> None:
    """The session's first turn leaves its own workspace as it was made. It is written with the turn's end,
    since nothing that is promised then may depend on a publication that comes later."""
    tx.publish(PublicationRow(session_id=session_id, workspace=(), published_at=at))


def has_done_work(view: View, session: SessionRow) -> bool:
    """Whether something was promised of the session's files: a turn was completed, here or before a fork."""
    turns = read_recent_turns(view, session.session_id, session.last_turn)
    return session.forked_from is not None or any(turn.outcome is Outcome.COMPLETED for turn in turns)
