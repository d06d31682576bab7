"""Who runs the turns of a session: its holder, a node, under a fence that rises with every claim."""

from clawdforge.core.model import SessionRow
from clawdforge.core.ports import Tx, View


def check_lease(tx: Tx, session_id: str, fence: int) -> None:
    """LeaseLost when somebody has claimed the session since it was claimed with this fence."""
    tx.append(session_id, (), fence=fence)


def is_held_elsewhere(view: View, session: SessionRow, node: str) -> bool:
    """Whether another node that lives holds the session: only that one runs its turns, or lets it go."""
    return session.holder not in (None, node) and view.is_alive(session.holder or "")


def runs_elsewhere(view: View, session: SessionRow, node: str) -> bool:
    """Whether the session's next turn is another node's: its holder's, or of whoever has its workspace."""
    if is_held_elsewhere(view, session, node):
        return True
    return session.folder is not None and view.node_with(session.folder) not in (None, node)


def claim_to_run(tx: Tx, session: SessionRow, node: str) -> int:
    """Become the holder; the new fence. Whoever runs a session whose workspace was at another node has it."""
    if session.folder is not None:
        tx.change_session(session.session_id, folder=tx.folder_of(node))
    return tx.claim(session.session_id, node)


def let_go(tx: Tx, session_id: str, node: str) -> bool:
    """Hold a session no longer that has nothing to run; whether nobody holds it now."""
    session = tx.session(session_id)
    if session is None:
        return True
    if session.holder == node and not tx.active_turn(session_id) and not tx.count_queued(session_id):
        tx.change_session(session_id, holder=None)
        return True
    return not is_held_elsewhere(tx, session, node) and session.holder != node


def give_up(tx: Tx, session_id: str, node: str) -> None:
    """Hold a session no longer in which no turn runs, for another node that is to run what waits in it."""
    session = tx.session(session_id)
    if session is not None and session.holder == node and not tx.active_turn(session_id):
        tx.change_session(session_id, holder=None)


def take(tx: Tx, session_id: str, node: str) -> bool:
    """Hold a session that no other node holds, and of which none has left a turn; whether it is ours."""
    session = tx.session(session_id)
    if session is None or session.holder == node:
        return True
    if is_held_elsewhere(tx, session, node) or tx.active_turn(session_id) is not None:
        return False
    tx.claim(session_id, node)
    return True
