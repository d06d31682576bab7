"""Who runs the turns of a session: its holder, under a fence that rises with every claim."""

from clawdforge.core.ports import Tx


def check_lease(tx: Tx, session_id: str, fence: int) -> None:
    """LeaseLost when somebody has claimed the session since it was claimed with this fence."""
    tx.append(session_id, (), fence=fence)
