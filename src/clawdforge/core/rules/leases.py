"""Who runs the turns of a session: its holder, a node, under a fence that rises with every claim."""

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx, View


def check_lease(tx: Tx, session_id: str, fence: int) -> None:
    """LeaseLost when somebody has claimed the session since it was claimed with this fence."""
    tx.append(session_id, (), fence=fence)


def is_held_elsewhere(view: View, session: SessionRow, node: str) -> bool:
    """Whether another node that lives holds the session: only that one runs its turns, or lets it go."""
    return session.holder not in (None, node) and view.is_alive(session.holder or "")


def runs_elsewhere(view: View, session: SessionRow, node: str, *, is_left: bool = False) -> bool:
    """Whether the session's next turn is another node's: its holder's, or of whoever has its workspace,
    unless that one has left it to this one."""
    if is_held_elsewhere(view, session, node):
        return True
    if is_left:
        return False
    return session.folder is not None and view.node_with(session.folder) not in (None, node)


def note_folder(tx: Tx, session_id: str, fence: int) -> None:
    """The workspace was found here: whoever had it before is gone, and from now on the session runs here."""
    check_lease(tx, session_id, fence)
    session = tx.session(session_id)
    if session is not None and session.folder is not None and session.holder is not None:
        folder = tx.folder_of(session.holder)
        if folder is not None and folder != session.folder:
            tx.change_session(session_id, folder=folder)


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


def hand_over(tx: Tx, session_id: str, node: str) -> bool:
    """Hold a session no longer, unless a turn runs in it; whether some wait there for another node."""
    give_up(tx, session_id, node)
    return tx.session(session_id) is not None and tx.count_queued(session_id) > 0


def take(tx: Tx, session_id: str, node: str) -> bool:
    """Hold a session that no other node holds, and of which none has left a turn; whether it is ours."""
    session = tx.session(session_id)
    if session is None or session.holder == node:
        return True
    if is_held_elsewhere(tx, session, node) or tx.active_turn(session_id) is not None:
        return False
    tx.claim(session_id, node)
    return True
