"""What is done between two turns of a session: home and workspace are kept as the turn left them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import Homes, LiveAgent, Snapshots
from clawdforge.core.running.answers import Answers

log = logging.getLogger(__name__)
ANSWER_SECS: Final = 0.05
"""A copy waits no longer than this for the callers that are being given the turn's answer."""


class Boundary:
    def __init__(self, answers: Answers, homes: Homes, snapshots: Snapshots, turns: LoopTurns) -> None:
        self.answers = answers
        self._turns = turns
        self._homes = homes
        self._snapshots = snapshots

    async def keep(self, session: SessionRow, turn_index: int, agent: LiveAgent | None) -> None:
        """The agent's home is worth a copy even if the agent is ended meanwhile."""
        await self.answers.wait_until_given(session.session_id, turn_index, ANSWER_SECS)
        await self._turns.enter(session.app_name)  # turns come in crowds too, from queues without a request
        if agent is None:
            await _try(session, self._snapshots.record_turn(session, turn_index, None))
        elif self._snapshots.has_files(session):
            files = self._snapshots.record_turn(session, turn_index, agent)
            home = self._copy_home(session, turn_index, agent)
            both = _try(session, files), _try(session, home)
            await asyncio.gather(*both, return_exceptions=True)  # else a cancel leaves one of them running
        else:
            await self._keep_together(session, turn_index, agent)

    async def _keep_together(self, session: SessionRow, turn_index: int, agent: LiveAgent) -> None:
        """Most workspaces are empty for ever. To see that is less than to ask another thread for it."""
        is_recorded = False

        def look() -> None:
            nonlocal is_recorded
            is_recorded = self._snapshots.record_empty(session, turn_index)

        await _try(session, self._copy_home(session, turn_index, agent, beside=look))
        if not is_recorded:
            await _try(session, self._snapshots.record_turn(session, turn_index, agent))

    async def _copy_home(
        self, session: SessionRow, turn_index: int, agent: LiveAgent, beside: Callable[[], None] | None = None
    ) -> None:
        session_id, agents_own = session.session_id, agent.agent_session_id
        await self._homes.copy_home(session_id, turn_index, agents_own, agent, session.app_name, beside)


async def _try(session: SessionRow, copying: Awaitable[None]) -> None:
    """A failure costs an undo to here its files or its memory, never the next turn."""
    try:
        await copying
    except Exception:  # as at the top of a task, which each would be otherwise
        log.exception("no copy after a turn", extra={"session_id": session.session_id})
