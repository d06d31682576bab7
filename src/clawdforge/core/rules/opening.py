"""How a session's agent is started: which memory it gets back, and what it has to be told.

The plan is made from the session's row and its recent turns before the agent starts. Once the agent has
started and says what it remembers, the same plan judges that. These are pure functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import View
from clawdforge.core.rules import memory
from clawdforge.core.rules.transcript import MAX_CHARS, tell_last_words, write_transcript
from clawdforge.wire.base import Json
from clawdforge.wire.turn import Outcome

TRANSCRIPT_MESSAGES = 5000
LAST_MESSAGES = 20
LAST_CHARS = 200
"""An agent whose last answer ends with so many characters of what was kept remembers it."""
How = Literal["new", "loaded", "resumed"]
Remembered = Sequence[str] | None
"""The user's words that a load replayed; None where the agent does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is to be done before and after the start of an agent for one turn."""

    session: SessionRow
    turn_index: int
    recent: Sequence[TurnRow]
    load: str | None
    """The agent's own session, to be loaded from its home as it is."""
    copy_of: int | None
    """The turn whose copy of the home is put back first, and then loaded; 0 is an empty home."""
    sources: Sequence[str]
    """The sessions that may have that copy if this one does not, nearest first."""
    files: str | None
    """The tree that the workspace is to become: an undo of files that a crash cut short."""
    beginning: str | None = None
    """Words that a loaded agent must know, since it was told them in a turn that it may not have kept."""
    again: bool = False
    """Another agent was given this turn's prompt, and nobody began to answer it."""
    missed: frozenset[int] = frozenset()
    """Turns that ran at another node after the home was published that came from there."""

    @property
    def counter(self) -> Json | None:
        return memory.find_counter(self.recent)

    def can_trust(self, how: How, remembered: Remembered) -> bool:
        """Whether the agent has the memory that it should have. If not, it starts once more with none."""
        if how == "new":
            return True
        if not memory.knows_beginning(remembered, self.beginning):
            return False
        return memory.is_intact(remembered, self.recent, self.session.context, self.copy_of)

    def find_unheard(self, how: How, remembered: Remembered) -> set[int] | None:
        """The turns that the agent has to be told; None stands for all of them."""
        if how == "new":
            return None
        return memory.unheard_turns(remembered, self.recent, self.turn_index) | self.missed

    def number_context(self, how: How) -> int:
        """The context's number. Plans for a new context raise it beforehand; a failed load raises it here."""
        unplanned = how == "new" and (self.again or self.session.context_plan == memory.LOAD)
        return self.session.context + unplanned

    def name_start(self, how: How, transcript: str) -> str:
        """What the event `context.started` calls it."""
        if how == "new":
            return "transcript" if transcript else "new"
        return how if self.copy_of is None else "restored"

    def write_preface(self, how: How, transcript: str, last_words: str = "") -> str:
        """What goes before the prompt. An agent that remembers anything has had its instructions."""
        instructions = self.session.instructions if how == "new" else None
        return memory.write_preface(instructions, transcript, last_words)


@dataclass(frozen=True, slots=True)
class Context:
    """A context that has begun: what is recorded of it, and what goes before its first prompt."""

    number: int
    how: str
    preface: str


def plan_opening(
    view: View, session: SessionRow, turn: TurnRow, *, again: bool = False, arrived: int | None = None
) -> Opening:
    """With `again` the agent is to remember what was said before the turn, and not the turn itself.

    `arrived` is the turn whose home came from another node, 0 if there was none to be had.
    """
    plan = memory.plan_restore(turn.parent or 0) if again else session.context_plan
    recent = memory.read_recent_turns(view, session.session_id, session.last_turn)
    missed: frozenset[int] = frozenset()
    if arrived is not None and plan == memory.LOAD:
        missed = memory.find_missed(recent, arrived, session.context, turn.turn_index)
        plan = memory.plan_restore(arrived if memory.is_current(recent, arrived, session.context) else 0)
    copy_of = memory.find_restore_turn(plan)
    is_loaded = plan == memory.LOAD and session.agent_session_id is not None
    return Opening(
        session=session,
        turn_index=turn.turn_index,
        again=again,
        missed=missed,
        recent=recent,
        load=session.agent_session_id if is_loaded else None,
        beginning=memory.find_beginning(view, session, recent, turn.turn_index) if is_loaded else None,
        copy_of=copy_of,
        sources=memory.find_sources(view, session, copy_of) if copy_of else (),
        files=session.files_plan,
    )


def describe_context(
    view: View,
    opening: Opening,
    how: How,
    remembered: Remembered,
    answered: str | None = None,
    room: int = MAX_CHARS,
) -> Context:
    """What has begun, now that a trusted agent is there.

    `answered` is the answer that it remembers last, as far as it says, and `room` how much it can be told.
    """
    session_id = opening.session.session_id
    unheard = opening.find_unheard(how, remembered)
    transcript = last_words = ""
    if unheard is None or unheard:
        messages = view.last_messages(session_id, TRANSCRIPT_MESSAGES)
        find_turn = partial(view.turn, session_id)
        transcript = write_transcript(messages, opening.turn_index, find_turn, unheard, room)
    cut_off = memory.find_cut_off(opening.recent, opening.turn_index, unheard or ()) if how != "new" else None
    if cut_off is not None:
        kept = tell_last_words(view.last_messages(session_id, LAST_MESSAGES), cut_off, room)
        last_words = "" if kept and answered and answered.endswith(kept[-LAST_CHARS:]) else kept
    return Context(
        opening.number_context(how),
        opening.name_start(how, transcript),
        opening.write_preface(how, transcript, last_words),
    )


def remind_of_cancelled(view: View, session: SessionRow, turn: TurnRow, room: int = MAX_CHARS) -> str:
    """What goes before the prompt for a live agent that forgets what was cancelled: the turns just before it.

    If those are all that it was given in its context, it has forgotten how that began as well.
    """
    recent = memory.read_recent_turns(view, session.session_id, session.last_turn)
    past = [one for one in memory.sort_started(recent) if one.turn_index != turn.turn_index and not one.cut]
    gone: set[int] = set()
    while past and past[-1].context == session.context and past[-1].outcome is Outcome.CANCELLED:
        gone.add(past.pop().turn_index)
    if not gone:
        return ""
    has_begun = bool(past) and past[-1].context == session.context
    messages = view.last_messages(session.session_id, TRANSCRIPT_MESSAGES)
    find_turn = partial(view.turn, session.session_id)
    told = write_transcript(messages, turn.turn_index, find_turn, gone if has_begun else None, room)
    return memory.write_preface(None if has_begun else session.instructions, told)
