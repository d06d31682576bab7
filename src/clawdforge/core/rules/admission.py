"""Whether one more turn may be queued, and what room its app has then."""

from typing import Final, NamedTuple

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Tx
from clawdforge.core.rules.pauses import check_pause
from clawdforge.core.rules.quotas import Quotas
from clawdforge.wire.errors import LimitExceeded

PLENTY: Final = 1 << 30
"""With so many bytes left it does not matter that what the prompt itself takes is only estimated."""
BYTES_OF_A_CHARACTER: Final = 10
"""At most: six in an event, where JSON escapes it, and four in a message."""


class Room(NamedTuple):
    """What an app may still store; None without a limit."""

    left: int | None


def admit_turn(tx: Tx, session: SessionRow, quotas: Quotas) -> int | None:
    """Raise if the operator's pause or one of the app's limits is against one more turn; else the room."""
    check_pause(tx, session.agent)
    quotas.check_turns(tx)
    room = quotas.check_room(tx)
    if quotas.max_agents(tx) == 0:
        raise LimitExceeded("this app may have no agents (max_agents); ask the operator for some")
    return room


def estimate_room(room: int | None, prompt: str) -> Room | None:
    """The room with the prompt stored as well; None where so little is left that it has to be looked up."""
    if room is None:
        return Room(None)
    left = room - BYTES_OF_A_CHARACTER * len(prompt)
    return Room(left) if left >= PLENTY else None
