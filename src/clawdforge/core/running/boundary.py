"""What is done between two turns of a session: home and workspace are kept as the turn left them."""

import asyncio
import logging
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
        session_id, app = session.session_id, session.app_name
        await self.answers.wait_until_given(session_id, turn_index, ANSWER_SECS)
        await self._turns.enter(app)  # turns come in crowds too, and from queues without a request
        copies = [self._snapshots.record_turn(session, turn_index, agent)]
        if agent is not None:
            copies.append(self._homes.copy_home(session_id, turn_index, agent.agent_session_id, agent, app))
        for failure in await asyncio.gather(*copies, return_exceptions=True):
            if failure is not None:  # it costs an undo to here its files or its memory, never the next turn
                log.error("no copy after a turn", exc_info=failure, extra={"session_id": session_id})
