"""Submits a prompt of the OpenAI dialect: into the session that it names, into a fork, or into a new one.

A session that is named gets the new prompt alone. What the caller sends as history must be what the session
has, unless it sends none; otherwise it is refused, or a fork is made, as the operator says.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final, TypeVar

from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import MessageRow, SessionQuery, SessionRow
from clawdforge.core.rules.paging import Place
from clawdforge.core.rules.turns import SubmittedTurn
from clawdforge.core.services.all import Services
from clawdforge.http.dialects.openai.agreement import (
    Agreement,
    Comparison,
    agrees_after,
    agrees_on_instructions,
    list_exchanges,
)
from clawdforge.http.dialects.openai.asked import Asked, Wanted
from clawdforge.http.dialects.openai.naming import SESSION_HEADER, Named
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.errors import Conflict, ForgeAPIError, HeadMoved, InvalidRequest, SessionClosed
from clawdforge.wire.json_bounds import LARGE_BYTES
from clawdforge.wire.message import Role
from clawdforge.wire.session import (
    CreateSession,
    ForkRequest,
    ImportRequest,
    PatchSession,
    PermissionMode,
    Retention,
)
from clawdforge.wire.turn import IfBusy, TurnRequest

Made = TypeVar("Made")
CANDIDATES: Final = 8
PAGE: Final = 1000
"""And so many bytes as a page of messages may have: no more than two are in memory for one request."""
FEW: Final = 20
MANY: Final = 100
TRIES: Final = 3
NEVER: Final = 0
"""No session has this head: a prompt that expects it is only found, if its key made it before."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One request: who sends it, what it asks for, which session it names."""

    core: Services
    settings: HttpSettings
    caller: Principal
    asked: Asked
    named: Named
    keep: bool

    @property
    def app(self) -> str:
        return self.caller.app

    async def submit(self) -> SubmittedTurn:
        known = await self._candidates()
        found = await self._find_replayed(known)
        if found is not None:
            return found
        fitting = [row for row in known if _fits(row, self.asked.wanted)]
        partings: list[tuple[SessionRow, int]] = []
        for row in fitting:
            done = await self._try(row)
            if isinstance(done, SubmittedTurn):
                return done
            if done.after is not None:
                partings.append((row, done.after))
        has_nothing = self.named.chat is None and not self.asked.history  # to begin another session with
        if known and (self.settings.openai_history == "refuse" or (has_nothing and not partings)):
            raise _disagreement(known[0], fits=bool(fitting))
        return await (self._fork(*partings[0]) if partings else self._begin())

    async def _try(self, row: SessionRow) -> SubmittedTurn | Agreement:
        """Submit the prompt if the session agrees with the caller; else say how far it does."""
        for _ in range(TRIES):
            agreement = await self._compare(row)
            if not agreement.whole:
                return agreement
            try:
                return await self._prompt(row, row.head)
            except HeadMoved:  # something was said meanwhile, or only a remark of the agent's was noted
                row = (await self.core.sessions.get(self.app, row.session_id)).row
        raise HeadMoved(head=row.head)

    async def _candidates(self) -> list[SessionRow]:
        """The named session; or those of the chat, the last used first: a fork is one of the same chat."""
        mine: list[SessionRow] = []
        if self.named.chat is not None:
            query = SessionQuery(project=self.named.chat, state="active", limit=CANDIDATES)
            states, _ = await self.core.sessions.list(self.app, query)
            mine = [state.row for state in states]
        if self.named.session_id is None:
            return mine
        row = (await self.core.sessions.get(self.app, self.named.session_id)).row
        if mine and row.session_id not in {one.session_id for one in mine}:
            raise InvalidRequest("the request names two sessions: one by its id, another by its chat")
        return [row]

    async def _find_replayed(self, known: Sequence[SessionRow]) -> SubmittedTurn | None:
        """The turn that this request made when it was sent before with the same key."""
        if self.named.key is None:
            return None
        for row in known:
            with suppress(HeadMoved, SessionClosed):
                return await self._submit(row.session_id, NEVER)
        return None

    async def _compare(self, row: SessionRow) -> Agreement:
        """Reads no more of the session than the caller says of it: for the new message alone, nothing."""
        sent = self.asked.history
        has_history = any(one.role is not Role.SYSTEM for one in sent)
        if self.named.session_id is None or (has_history and self.named.turn is None):
            return await self._compare_pages(row)
        if has_history:
            raise InvalidRequest("with previous_response_id, send the new message alone")
        if self.named.turn is not None and not await self._is_last(row, self.named.turn):
            return Agreement(whole=False, after=self.named.turn)
        return Agreement(whole=not sent or await self._has_instructions(row))

    async def _is_last(self, row: SessionRow, turn_index: int) -> bool:
        """Whether nothing that counts was said after this turn; looks back from the end, no further."""
        turn = await self.core.turns.get(self.app, row.session_id, turn_index)
        if turn.cut:
            return False
        failed = await self._find_failed(row)
        rows: list[MessageRow] = []
        before: int | None = None
        while True:
            place = Place("before", before)
            span = await self.core.messages.page(self.app, row.session_id, place, FEW, archived=True)
            rows = [*span.rows, *rows]
            ours = list_exchanges(rows, failed)
            if agrees_after(ours, turn_index):
                return True
            later = [exchange for exchange in ours[1:] if exchange.turn != turn_index]
            if span.previous is None or any(not exchange.optional for exchange in later):
                return False
            before = span.previous

    async def _has_instructions(self, row: SessionRow) -> bool:
        """Whether those that were sent are what the session begins with."""
        sent = self.asked.history
        span = await self.core.messages.page(
            self.app, row.session_id, Place("after", 0), len(sent) + 1, archived=True
        )
        lead = takewhile(lambda one: one.role == Role.SYSTEM, span.rows)
        return agrees_on_instructions([one.content for one in lead], sent)

    async def _find_failed(self, row: SessionRow) -> set[int]:
        shown = await self.core.messages.transcript(self.app, row.session_id, 0, with_cut_off=True)
        return {ending.turn.turn_index for ending in shown.endings}

    async def _compare_pages(self, row: SessionRow) -> Agreement:
        """Goes through all that was said, archived messages too, since the caller knows nothing of a summary;
        but no further than the two agree, and so not beyond what was sent."""
        sent = self.asked.history
        failed = await self._find_failed(row)
        length = sum(len(one.text) for one in sent)
        comparison = await self._beside(partial(Comparison, failed, sent), len(sent), length)
        limit, after = min(PAGE, len(sent) + FEW), 0
        while True:
            span = await self.core.messages.page(
                self.app, row.session_id, Place("after", after), limit, archived=True
            )
            length = sum(len(one.content) for one in span.rows)
            may_agree = await self._beside(partial(comparison.feed, span.rows), len(span.rows), length)
            if span.next is None or not may_agree:
                return await self._beside(comparison.end, len(span.rows), length)
            after = span.next
            await self.core.loop_turns.slice(self.app)

    async def _beside(self, work: Callable[[], Made], count: int, length: int) -> Made:
        """What is long is not computed in the event loop."""
        if count <= MANY and length <= LARGE_BYTES:
            return work()
        return await self.core.computing.run(self.app, work)

    async def _prompt(self, row: SessionRow, head: int) -> SubmittedTurn:
        wanted = self.asked.wanted.model
        if wanted is not None and wanted != row.model:
            change = PatchSession(model=wanted, expected_head=head)
            head = (await self.core.sessions.patch(self.app, row.session_id, change)).row.head
        return await self._submit(row.session_id, head)

    async def _submit(self, session_id: str, head: int | None) -> SubmittedTurn:
        request = TurnRequest(prompt=self.asked.prompt, if_busy=IfBusy.REJECT, expected_head=head)
        return await self.core.turns.submit(self.app, session_id, request, self.named.key, self.caller)

    async def _fork(self, row: SessionRow, after: int) -> SubmittedTurn:
        made = await self.core.forks.fork(self.app, row.session_id, ForkRequest(after_turn=after))
        return await self._submit_first(made.row, self._prompt(made.row, made.row.head))

    async def _submit_first(self, made: SessionRow, submitting: Awaitable[SubmittedTurn]) -> SubmittedTurn:
        """A session that was made for a prompt is gone again if that is refused and nobody else uses it."""
        try:
            return await submitting
        except ForgeAPIError:
            await self.core.sessions.discard(self.app, made)
            raise

    async def _begin(self) -> SubmittedTurn:
        """A new session; what was said before is its transcript, which the agent gets with the prompt."""
        wanted, may_decide = self.asked.wanted, self.caller.may_decide
        create = CreateSession(
            agent=wanted.agent,
            persona=wanted.persona,
            model=wanted.model,
            permission_mode=await self._mode(wanted),
            retention=Retention.KEEP if self.keep or self.named.lasts else Retention.TTL,
        )
        if self.asked.history:
            messages = [{"role": one.role.value, "content": one.text} for one in self.asked.history]
            made = await self.core.transfer.import_session(
                self.app,
                ImportRequest(messages=messages),
                may_decide=may_decide,
                wanted=create,
                project=self.named.chat,
            )
        else:
            made = await self.core.sessions.create(
                self.app, create, project=self.named.chat, may_decide=may_decide
            )
        return await self._submit_first(made.row, self._submit(made.row.session_id, None))

    async def _mode(self, wanted: Wanted) -> PermissionMode:
        """What a persona says; else nobody who could decide is there, or somebody is waited for."""
        if wanted.persona is not None:
            own = (await self.core.personas.get(self.app, wanted.persona)).permission_mode
            if own is not None:
                return own
        waits = self.settings.openai_permissions == "wait"
        return PermissionMode.ASK if waits else PermissionMode.DENY_ALL


def _fits(row: SessionRow, wanted: Wanted) -> bool:
    return row.persona == wanted.persona if wanted.persona is not None else row.agent == wanted.agent


def _disagreement(row: SessionRow, *, fits: bool) -> Conflict:
    if not fits:
        name = f"persona/{row.persona}" if row.persona else row.agent
        return Conflict(
            f"session {row.session_id} is one of the model {name}; name that, or begin another conversation",
            session_id=row.session_id,
        )
    return Conflict(
        f"the history that was sent is not that of session {row.session_id}; send the new message alone with"
        f" the header {SESSION_HEADER}, or let the operator set CLAWDFORGE_OPENAI_HISTORY=fork",
        session_id=row.session_id,
    )
