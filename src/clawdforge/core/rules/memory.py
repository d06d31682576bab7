"""The agent's own memory of a session: how to get it back, and what to do when it is gone.

`context_plan` on the session says how the next start of the agent gets its memory:

    new           a fresh one, which knows nothing
    load          the agent's own session, which it loads or resumes
    restore:N     the copy of its home as it was after turn N, then load; 0 is an empty home
    transcript    a fresh one that is told what was said so far

The agent's memory is a cache of our log. It is checked after each load, and rebuilt from the log when lost.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import View
from clawdforge.wire.base import Json
from clawdforge.wire.message import Role
from clawdforge.wire.turn import Outcome

NEW, LOAD, TRANSCRIPT = "new", "load", "transcript"
RESTORE = "restore:"
IMPORTED_TURN = 0
RECENT_TURNS = 50
BEFORE = 4 * RECENT_TURNS
"""Among so many messages is one that was said before the turns of a context in which none was completed."""
SOME_CHARS = 200
CUT_OFF = (Outcome.INTERRUPTED, Outcome.TIMED_OUT, Outcome.FAILED)
"""Such a turn may have ended with its agent's process, which had no time to keep what it was saying."""
MAX_SOURCES = 8


def plan_restore(turn_index: int) -> str:
    return f"{RESTORE}{turn_index}"


def find_restore_turn(plan: str) -> int | None:
    """The turn whose copy a plan wants, None when it wants none."""
    return int(plan.removeprefix(RESTORE)) if plan.startswith(RESTORE) else None


def outlives(changed: Json) -> bool:
    """Whether an agent keeps its memory when its session is changed so.

    Another model is set in the session that the agent comes back to. Which one it would use by itself is not
    known, so that a model which is taken back begins a context that is told the transcript, as another agent
    does.
    """
    return "agent" not in changed and changed.get("model") is not None


def is_intact(
    remembered: Sequence[str] | None, turns: Sequence[TurnRow], context: int, restored: int | None = None
) -> bool:
    """Whether a loaded agent knows the last prompt that it answered in this context, and no more than it may.

    `remembered` is what it replayed of the user's words, None where it does not say.

    After a restore, that is the prompt of the turn that it was restored to, and none of those cut since.
    """
    if remembered is None:
        return True
    ours = [turn for turn in turns if turn.outcome is Outcome.COMPLETED and not turn.cut]
    if restored is None:
        done = [turn for turn in sort_started(ours) if turn.context == context]
    else:
        done = [turn for turn in ours if turn.turn_index == restored]
    if done and not any(done[-1].prompt in text for text in remembered):
        return False
    gone = {turn.prompt for turn in turns if turn.cut} - {turn.prompt for turn in turns if not turn.cut}
    return not remembered or remembered[-1] not in gone


def find_beginning(view: View, session: SessionRow, turns: Sequence[TurnRow], running: int) -> str | None:
    """Words that an agent had from the beginning of a context in which it has not yet completed a turn.

    It was told them with its first prompt, and may have kept nothing of that: it was killed before, or the
    turn was stopped. None where it has completed a turn since, or was told nothing.
    """
    own = [turn for turn in sort_started(turns) if turn.context == session.context and not turn.cut]
    own = [turn for turn in own if turn.turn_index != running]
    if not own or any(turn.outcome is Outcome.COMPLETED for turn in own):
        return None
    later = {None, running, *(turn.turn_index for turn in own)}
    said = [row for row in view.last_messages(session.session_id, BEFORE) if row.turn not in later]
    asked = [row for row in said if row.role == Role.USER]
    words = next((row.content for row in reversed(asked or said) if row.content), session.instructions)
    return words.strip()[:SOME_CHARS] if words else None


def knows_beginning(remembered: Sequence[str] | None, beginning: str | None) -> bool:
    """An agent that does not say what it remembers is not taken at a word that it has not given."""
    return beginning is None or any(beginning in text for text in remembered or ())


def unheard_turns(remembered: Sequence[str] | None, turns: Sequence[TurnRow], running: int) -> set[int]:
    """The turns at the end that were cut off and that a loaded agent does not know of.

    The same words may have been said before, so what it remembers of them is counted, not only looked for.
    """
    found: set[int] = set()
    past = [turn for turn in sort_started(turns) if turn.turn_index != running and not turn.cut]
    while past and past[-1].outcome is Outcome.INTERRUPTED and remembered is not None:
        turn = past.pop()
        heard = remembered[-len(past) - 1 :]
        before = sum(other.prompt.endswith(turn.prompt) for other in past if other.context == turn.context)
        if sum(text.endswith(turn.prompt) for text in heard) > before:
            break
        found.add(turn.turn_index)
    return found


def find_cut_off(turns: Sequence[TurnRow], running: int, unheard: Collection[int]) -> TurnRow | None:
    """The last turn, if its answer was cut off and a loaded agent knows its prompt."""
    past = [turn for turn in sort_started(turns) if turn.turn_index != running and not turn.cut]
    if not past or past[-1].outcome not in CUT_OFF or past[-1].turn_index in unheard:
        return None
    return past[-1]


def is_current(turns: Sequence[TurnRow], turn_index: int, context: int) -> bool:
    """Whether an agent that was brought back to the end of this turn knows nothing that was taken back."""
    return any(turn.turn_index == turn_index and turn.context == context and not turn.cut for turn in turns)


def find_missed(turns: Sequence[TurnRow], turn_index: int, context: int, running: int) -> frozenset[int]:
    """The turns that came after the one that an agent was brought back to, without the one that runs."""
    started = [turn.turn_index for turn in sort_started(turns) if not turn.cut and turn.context == context]
    after = started[started.index(turn_index) + 1 :] if turn_index in started else []
    return frozenset(after) - {running}


def sort_started(turns: Sequence[TurnRow]) -> list[TurnRow]:
    """Turns that were started, as they ran: one that interrupted ran before others that waited."""
    started = [turn for turn in turns if turn.started_at is not None]
    return sorted(started, key=lambda turn: (turn.first_seq or 0, turn.started_at))


def find_counter(turns: Sequence[TurnRow]) -> Json | None:
    """The agent's running totals as the last turn that still counts left them."""
    counters = [turn.usage.get("counter") for turn in turns if turn.usage and not turn.cut]
    return next((found for found in reversed(counters) if isinstance(found, dict)), None)


def read_recent_turns(view: View, session_id: str, last_turn: int) -> list[TurnRow]:
    return view.turns_from(session_id, max(1, last_turn - RECENT_TURNS))


def find_sources(view: View, session: SessionRow, turn_index: int) -> list[str]:
    """The sessions that a fork has this turn from, nearest first: they may have a copy of it."""
    found: list[str] = []
    at: SessionRow | None = session
    while at is not None and at.forked_from is not None and len(found) < MAX_SOURCES:
        turn = view.turn(at.session_id, turn_index)
        if turn is None or turn.first_seq is not None:
            break
        found.append(at.forked_from)
        at = view.session(at.forked_from)
    return found


def write_preface(instructions: str | None, transcript: str, last_words: str = "") -> str:
    """What goes before the first prompt of a context: the persona's instructions and the transcript.

    `last_words` is what was kept of an answer that was cut off, for an agent that remembers only its prompt.
    """
    parts = [f"[Instructions]\n{instructions}"] if instructions else []
    if transcript:
        parts.append(f"[Conversation so far]\n{transcript}\n[End of the conversation so far]")
    if last_words:
        kept = "Your last answer was cut off. This much of it was kept"
        parts.append(f"[{kept}]\n{last_words}\n[End of what was kept]")
    return "\n\n".join(parts)


def name_files(prompt: str, paths: Sequence[Path]) -> str:
    """Agents open attached files with their own tools, so they are named by absolute paths up front."""
    if not paths:
        return prompt
    listed = "\n".join(f"- {path}" for path in paths)
    return f"[Attached files]\n{listed}\n\n{prompt}"
