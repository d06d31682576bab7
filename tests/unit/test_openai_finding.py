"""A session of any length takes a new message without being read; only what a caller sends is compared."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.rules.paging import MessageSpan, Place
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.all import Services
from clawdforge.http.dialects.openai.asked import Asked, Said, Wanted
from clawdforge.http.dialects.openai.finding import FEW, PAGE, Submission
from clawdforge.http.dialects.openai.naming import Named
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import Conflict
from clawdforge.wire.message import Role

LENGTH = 10_000
SESSIONS = 3


class Row(MessageRow):
    """One of which can be told whether anybody keeps it."""


def row_of(seq: int) -> MessageRow:
    """The first is what the session was told to be; then each turn has a prompt and an answer."""
    if seq == 1:
        return Row(session_id="s", seq=1, role="system", content="be brief", ts=1, turn=0)
    role = "user" if seq % 2 == 0 else "assistant"
    return Row(session_id="s", seq=seq, role=role, content=f"{seq}", ts=1, turn=seq // 2)


WHOLE = [Said(Role(one.role), one.content) for one in map(row_of, range(1, LENGTH + 1))]


@dataclass
class LongSession:
    """Stands for the services, and counts the messages that are read."""

    read: int = 0
    computed: int = 0
    kept: list[weakref.ref[MessageRow]] = field(default_factory=list)
    most_kept: int = 0
    submitted: list[int | None] = field(default_factory=list)

    async def get(self, _app: str, _session_id: str, turn: int | None = None) -> Any:
        if turn is not None:
            return SimpleNamespace(cut=False)
        row = SimpleNamespace(session_id="s", agent="claude", persona=None, model=None, head=9)
        return SimpleNamespace(row=row)

    async def list(self, *_: Any) -> Any:
        return [await self.get("", "")] * SESSIONS, None

    async def transcript(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(endings=())

    async def page(self, _app: str, _id: str, place: Place, limit: int, **_: Any) -> MessageSpan:
        if place.kind == "before":
            last = LENGTH if place.seq is None else place.seq - 1
            first = max(1, last - limit + 1)
        else:
            first = (place.seq or 0) + 1
            last = min(LENGTH, first + limit - 1)
        self.read += last - first + 1
        rows = [row_of(seq) for seq in range(first, last + 1)]
        self.kept.append(weakref.ref(rows[0]))
        self.most_kept = max(self.most_kept, sum(one() is not None for one in self.kept))
        return MessageSpan(rows, first if first > 1 else None, last if last < LENGTH else None)

    async def slice(self, _app: str) -> None:
        pass

    async def run(self, _app: str, work: Callable[[], Any]) -> Any:
        self.computed += 1
        return work()

    async def submit(self, _app: str, _id: str, request: Any, *_: Any) -> Any:
        self.submitted.append(request.expected_head)
        return SubmittedTurn(cast(TurnRow, None), 9)


def submission(session: LongSession, named: Named, *history: Said) -> Submission:
    core = SimpleNamespace(sessions=session, messages=session, turns=session)
    core.loop_turns = core.computing = session
    asked = Asked(Wanted(agent="claude"), history, "new")
    settings = cast(HttpSettings, SimpleNamespace(openai_history="refuse"))
    return Submission(cast(Services, core), settings, Principal(app="a"), asked, named, keep=False)


@pytest.mark.parametrize(
    ("named", "history", "most"),
    [
        (Named(session_id="s"), [], 0),
        (Named(session_id="s"), [Said(Role.SYSTEM, "be brief")], 2),
        (Named(session_id="s", turn=LENGTH // 2), [], FEW),
        (Named(session_id="s", turn=LENGTH // 2), [Said(Role.SYSTEM, "be brief")], FEW + 2),
        (Named(session_id="s"), WHOLE, LENGTH),
    ],
    ids=["alone", "instructions", "after a response", "both", "whole history"],
)
async def test_no_more_is_read_than_the_caller_says(named: Named, history: list[Said], most: int) -> None:
    session = LongSession()
    await submission(session, named, *history).submit()
    assert len(session.submitted) == 1
    assert session.read <= most
    assert (session.computed > 0) is (most == LENGTH), "what is long is compared beside the loop"
    assert session.most_kept <= 2, "pages are compared and let go"


@pytest.mark.parametrize(
    "history",
    [[], WHOLE[:1], WHOLE[:11], [*WHOLE[:10], Said(Role.USER, "other"), *WHOLE[11:]]],
    ids=["nothing", "instructions", "a part", "another"],
)
async def test_of_a_chat_no_more_is_read_than_agrees(history: list[Said]) -> None:
    """Of each session that it may be."""
    session = LongSession()
    with pytest.raises(Conflict):
        await submission(session, Named(chat="c"), *history).submit()
    assert session.read <= SESSIONS * min(PAGE, len(history) + FEW)


async def test_an_old_response_is_refused_without_reading_back_to_it() -> None:
    session = LongSession()
    with pytest.raises(Exception, match="not that of session"):
        await submission(session, Named(session_id="s", turn=3)).submit()
    assert session.read <= FEW
