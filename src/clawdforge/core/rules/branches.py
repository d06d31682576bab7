"""A session as a tree: its turns, which one each was said after, and the sessions that were forked there."""

from dataclasses import dataclass
from typing import Final

from clawdforge.core.models.rows import ForkNode, SessionRow, TurnNode
from clawdforge.core.ports import View
from clawdforge.core.rules.turns import need_session

PROMPT_CHARS: Final = 200
MAX_FORKS: Final = 1000


@dataclass(frozen=True, slots=True)
class Branches:
    """A page of a session's turns in the order of their numbers; `next` is the `after` of the next one."""

    session: SessionRow
    turns: list[TurnNode]
    forks: list[ForkNode]
    next: int | None


def read_branches(view: View, session_id: str, after: int, limit: int) -> Branches:
    session = need_session(view, session_id)
    found = view.turn_nodes(session_id, after=after, limit=limit + 1, chars=PROMPT_CHARS)
    page = found[:limit]
    last = page[-1].turn_index if page else after
    # What was forked before the first turn stands on the first page.
    forks = view.forks_after(session_id, after=after or -1, last=last, limit=MAX_FORKS)
    return Branches(session, _with_parents(page, after), forks, last if len(found) > limit else None)


def _with_parents(page: list[TurnNode], after: int) -> list[TurnNode]:
    """Where it was not noted: the last one before it that was not taken back."""
    before, told = after, []
    for node in page:
        told.append(node if node.parent is not None else node._replace(parent=before))
        before = before if node.cut else node.turn_index
    return told
