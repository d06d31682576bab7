"""Two first messages of one chat that cross: the one that is refused takes nothing from the other."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.rules.sessions import SessionState
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.http.dialects.openai.asked import Asked, Wanted
from clawdforge.http.dialects.openai.finding import Submission
from clawdforge.http.dialects.openai.naming import Named
from clawdforge.http.settings import HttpSettings
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.errors import SessionBusy
from clawdforge.wire.turn import TurnState
from tests.unit.supervised import make_settings


def submission(parts: Parts, prompt: str) -> Submission:
    """As a front end makes it that names its chat, which leads to whatever session the chat has."""
    settings = HttpSettings(stopping=asyncio.Event())
    asked = Asked(Wanted(agent="scripted"), (), prompt)
    return Submission(
        parts.services, settings, Principal(app=LOCAL_APP), asked, Named(chat="chat"), keep=False
    )


async def test_who_was_first_keeps_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other had made the session, found it busy, and deleted it with the turn that ran in it."""
    async with asyncio.timeout(120), open_parts(make_settings(tmp_path)) as parts:
        sessions, first = parts.services.sessions, list[SubmittedTurn]()
        create = sessions.create

        async def create_and_be_late(*words: Any, **more: Any) -> SessionState:
            made = await create(*words, **more)
            first.append(await submission(parts, "hang").submit())
            return made

        monkeypatch.setattr(sessions, "create", create_and_be_late)
        with pytest.raises(SessionBusy):
            await submission(parts, "echo late").submit()
        (state,), _ = await sessions.list(LOCAL_APP, SessionQuery())
        turn = await parts.services.turns.get(LOCAL_APP, state.row.session_id, first[0].turn.turn_index)
        assert turn.state is not TurnState.ENDED
        await parts.supervisor.stop(0)
