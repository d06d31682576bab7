"""Whether the operator lets turns begin: asked in the transaction that would accept or start one."""

from collections.abc import Sequence
from typing import Final

from clawdforge.core.models.rows import PauseRow
from clawdforge.core.ports import View
from clawdforge.wire.errors import Paused

RETRY_SECS: Final = 60
"""Nobody knows when the operator resumes; so often it does no harm to ask."""


def find_pause(view: View, agent: str) -> PauseRow | None:
    """What keeps the app's turns of this agent from starting; the widest pause, if there are several."""
    return choose_pause(view.pauses(), agent)


def choose_pause(pauses: Sequence[PauseRow], agent: str) -> PauseRow | None:
    """The same among those that are known."""
    return next((pause for pause in pauses if pause.agent in ("", agent)), None)


def check_pause(view: View, agent: str) -> None:
    """Raise Paused where nothing may start."""
    pause = find_pause(view, agent)
    if pause is not None:
        why = f" ({pause.reason})" if pause.reason else ""
        raise Paused(
            f"the operator has paused {_name(pause)}{why}; send this again when it was resumed,"
            " what is queued already goes on then",
            retry_after=RETRY_SECS,
            reason=pause.reason,
        )


def _name(pause: PauseRow) -> str:
    if not pause.agent:
        return "this app" if pause.app_name else "this server"
    return f"the agent {pause.agent}{' for this app' if pause.app_name else ''}"
