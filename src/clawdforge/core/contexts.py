"""The agent's own memory of a session: how it is had again, and what is done when it is gone.

`context_plan` on the session says how the next start of the agent gets its memory:

    new           a fresh one, which knows nothing
    load          the agent's own session, which it loads or resumes
    restore:N     the copy of its home as it was after turn N, then load
    transcript    a fresh one that is told what was said so far

The agent's memory is a cache of our log. It is checked after a return, and told again when it is lost.
"""

from collections.abc import Sequence
from pathlib import Path

from clawdforge.core.model import MessageRow, TurnRow
from clawdforge.core.ports import LiveAgent, View
from clawdforge.wire.message import Role
from clawdforge.wire.turn import Outcome

NEW, LOAD, TRANSCRIPT = "new", "load", "transcript"
RESTORE = "restore:"
IMPORTED_TURN = 0
MAX_TRANSCRIPT_CHARS = 400_000
RECENT_TURNS = 50


def restore_plan(turn_index: int) -> str:
    return f"{RESTORE}{turn_index}"


def restore_turn(plan: str) -> int | None:
    """The turn whose copy a plan wants, None when it wants none."""
    return int(plan.removeprefix(RESTORE)) if plan.startswith(RESTORE) else None


def kept(live: LiveAgent, turns: Sequence[TurnRow], context: int) -> bool:
    """Whether a loaded agent still knows the last prompt that it answered in this context."""
    if live.remembered is None:
        return True
    done = [
        turn
        for turn in turns
        if turn.context == context and turn.outcome is Outcome.COMPLETED and not turn.cut
    ]
    return not done or any(done[-1].prompt in text for text in live.remembered)


def unknown(live: LiveAgent, turns: Sequence[TurnRow], before_turn: int) -> int | None:
    """The first of the turns at the end that were cut off and that a loaded agent does not know of."""
    first = None
    for turn in sorted(turns, key=lambda turn: turn.turn_index, reverse=True):
        if turn.turn_index >= before_turn or turn.cut or turn.started_at is None:
            continue
        if turn.outcome is not Outcome.INTERRUPTED or live.remembered is None:
            break
        if any(turn.prompt in text for text in live.remembered):
            break
        first = turn.turn_index
    return first


def recent_turns(view: View, session_id: str, last_turn: int) -> list[TurnRow]:
    return view.turns_from(session_id, max(1, last_turn - RECENT_TURNS))


def transcript(messages: Sequence[MessageRow], before_turn: int, from_turn: int = 0) -> str:
    """What was said so far, for an agent that does not know; the newest part of it when it is long.

    A message that was only posted, with no turn of its own, is not for the agent.
    """
    lines: list[str] = []
    room = MAX_TRANSCRIPT_CHARS
    for message in reversed(messages):
        if message.turn is None or not from_turn <= message.turn < before_turn or not message.content:
            continue
        who = {Role.USER: "User", Role.ASSISTANT: "Assistant"}.get(Role(message.role), message.role.title())
        line = f"{who}: {message.content}"
        if len(line) > room:
            lines.append("(what came before is left out)")
            break
        room -= len(line)
        lines.append(line)
    return "\n\n".join(reversed(lines))


def preface(instructions: str | None, told: str) -> str:
    """What goes before the prompt in a context that must be told: a persona's words, and what was said."""
    parts = [f"[Instructions]\n{instructions}"] if instructions else []
    if told:
        parts.append(f"[Conversation so far]\n{told}\n[End of the conversation so far]")
    return "\n\n".join(parts)


def with_files(prompt: str, paths: Sequence[Path]) -> str:
    """Agents open attached files with their own tools, so they are named by absolute paths up front."""
    if not paths:
        return prompt
    listed = "\n".join(f"- {path}" for path in paths)
    return f"[Attached files]\n{listed}\n\n{prompt}"
