"""Who runs the turns of a session: its holder, a node, under a fence that rises with every claim."""

from clawdforge.core.model import SessionRow
from clawdforge.core.ports import Tx, View


def check_lease(tx: Tx, session_id: str, fence: int) -> None:
    """LeaseLost when somebody has claimed the session since it was claimed with this fence."""
    tx.append(session_id, (), fence=fence)


def is_held_elsewhere(view: View, session: SessionRow, node: str) -> bool:
    """Whether another node that lives holds the session: only that one runs its turns, or lets it go."""
    return session.holder not in (None, node) and view.is_alive(session.holder or "")


def let_go(tx: Tx, session_id: str, node: str) -> bool:
    """Hold a session no longer that has nothing to run; whether nobody holds it now."""
    session = tx.session(session_id)
    if session is None:
        return True
    if session.holder == node and not tx.active_turn(session_id) and not tx.count_queued(session_id):
        tx.change_session(session_id, holder=None)
        return True
    return not is_held_elsewhere(tx, session, node) and session.holder != node


def take(tx: Tx, session_id: str, node: str) -> bool:
    """Hold a session that no other node holds; whether it is ours."""
    session = tx.session(session_id)
    if session is None or is_held_elsewhere(tx, session, node):
        return session is None
    if session.holder != node:
        tx.claim(session_id, node)
    return True
