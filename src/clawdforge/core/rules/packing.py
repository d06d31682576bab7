"""Which events of a session are old enough to be packed."""

from clawdforge.core.ports import View
from clawdforge.wire.base import Micros


def last_old_event(view: View, session_id: str, before: Micros) -> int:
    """The number up to which all belong to turns that ended before then, or stand before such; 0 without.

    Where nothing at all has happened since, that is the end of the log.
    """
    session = view.session(session_id)
    if session is None:
        return 0
    active = view.active_turn(session_id)
    if active is None and session.updated_at < before:
        return session.head
    last = view.last_ended_seq(session_id, before)
    return last if active is None or active.first_seq is None else min(last, active.first_seq - 1)
