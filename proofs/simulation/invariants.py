"""What must be true after every run: the promise, as rows, agents and clients tell of it."""

from collections import Counter
from collections.abc import Iterator

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.stores.sqlite.view import SqliteView
from clawdforge.wire.event import EventType
from clawdforge.wire.message import Role
from clawdforge.wire.turn import Outcome, TurnState
from proofs.simulation.plans import APPS
from proofs.simulation.story import Story
from proofs.simulation.world import World

ALL = 1_000_000


def check(world: World, story: Story) -> Iterator[str]:
    seen = set()
    turns: dict[str, list[TurnRow]] = {}
    logs: dict[str, list[StoredEvent]] = {}
    for known in story.sessions:
        view = SqliteView(world.disk.db, known.app)
        row = view.session(known.session_id)
        if row is None or known.session_id in seen:
            continue
        seen.add(known.session_id)
        logs[known.session_id] = view.events(known.session_id, after=0, limit=ALL, max_bytes=1 << 40)
        turns[known.session_id] = view.turns(known.session_id, limit=ALL)
        for words in _check_session(view, row, logs[known.session_id], turns[known.session_id]):
            yield f"s{story.sessions.index(known)}: {words}"
    yield from _check_purses(world)
    yield from _check_acks(story, logs, turns)
    yield from _check_readers(story, logs)
    yield from _check_heard(world, story, turns)
    yield from _check_decisions(world, story)


def _check_purses(world: World) -> Iterator[str]:
    """Every turn has given back what it held, also those of sessions that are deleted."""
    for app in APPS:
        view = SqliteView(world.disk.db, app)
        for budget in view.budgets():
            purse = view.purse(budget.budget_id, 0)
            if purse is not None and (purse.reserved_tokens or purse.reserved_cost):
                yield f"{purse.reserved_tokens} turns of {app} still hold a part of its budget"


def _check_session(
    view: SqliteView, row: SessionRow, log: list[StoredEvent], turns: list[TurnRow]
) -> Iterator[str]:
    seqs = [event.seq for event in log]
    if seqs != list(range(1, row.head + 1)):
        yield f"the log is not 1..{row.head}: {seqs}"
    yield from _check_lives(log, turns)
    yield from _check_messages(view, row, log, turns)
    for turn in turns:
        if view.reservations(row.session_id, turn.turn_index):
            yield f"turn {turn.turn_index} is {turn.state.value}, but holds a part of a budget"
    if view.permissions(row.session_id, state="pending"):
        yield "a permission is pending, but no turn runs"


def _check_lives(log: list[StoredEvent], turns: list[TurnRow]) -> Iterator[str]:
    """Queued once, started at most once, ended once, in this order; never two at a time, none back twice."""
    lives: dict[int, list[str]] = {}
    running: int | None = None
    for event in log:
        if event.turn is None:
            continue
        if event.type.startswith("turn."):
            lives.setdefault(event.turn, []).append(event.type)
        elif event.type == EventType.TEXT and event.turn != running:
            yield f"turn {event.turn} speaks while {running} runs"
        if event.type == EventType.TURN_STARTED:
            if running is not None:
                yield f"turn {event.turn} starts while {running} runs"
            running = event.turn
        elif event.type == EventType.TURN_ENDED and event.turn == running:
            running = None
    whole = [EventType.TURN_QUEUED.value, EventType.TURN_STARTED.value, EventType.TURN_ENDED.value]
    for turn in turns:
        life = lives.get(turn.turn_index)
        if life is None and turn.first_seq is None and turn.state is TurnState.ENDED:
            continue  # it came with a fork
        if life not in (whole, [whole[0], whole[2]]):
            yield f"turn {turn.turn_index} lived {life}"
        if turn.state is not TurnState.ENDED or turn.outcome is None:
            yield f"turn {turn.turn_index} is {turn.state.value}, {turn.outcome}"
    brought_back = Counter(turn.retry_of for turn in turns if turn.automatic)
    for index, times in brought_back.items():
        if times > 1:
            yield f"turn {index} was brought back {times} times"


def _check_messages(
    view: SqliteView, row: SessionRow, log: list[StoredEvent], turns: list[TurnRow]
) -> Iterator[str]:
    """Messages are the projection of the log: the prompt of each turn that started, and what it said."""
    said: dict[int, str] = {}
    for event in log:
        if event.type == EventType.TEXT and event.turn is not None:
            said[event.turn] = said.get(event.turn, "") + str(event.decode()["content"])
    messages = view.messages(row.session_id, limit=ALL, show="all")
    asked = Counter(message.turn for message in messages if message.role == Role.USER)
    answers = {message.turn: message.content for message in messages if message.role == Role.ASSISTANT}
    for turn in turns:
        index = turn.turn_index
        if turn.first_seq is None or turn.cut:
            continue
        if asked[index] != 1:
            yield f"turn {index} has {asked[index]} messages of the user"
        if answers.get(index, "") != said.get(index, ""):
            yield f"turn {index} said {said.get(index, '')!r}, its message is {answers.get(index, '')!r}"
        wanted = [
            f"{turn.prompt.split()[0]}.{n} "
            for n, deed in enumerate(turn.prompt.split()[1:])
            if deed == "say"
        ]
        if turn.outcome is Outcome.COMPLETED and said.get(index, "") != "".join(wanted):
            yield f"turn {index} is completed, but said {said.get(index, '')!r}"
    cut = {turn.turn_index for turn in turns if turn.cut}
    ghosts = [message.turn for message in messages if message.turn in cut]
    if ghosts:
        yield f"messages of turns that were cut are shown: {ghosts}"
    shown = view.messages(row.session_id, limit=ALL)
    if len(shown) != row.message_count:
        yield f"{row.message_count} messages are counted, {len(shown)} are there"


def _check_acks(
    story: Story, logs: dict[str, list[StoredEvent]], turns: dict[str, list[TurnRow]]
) -> Iterator[str]:
    """What was answered with success is on stable storage; one key is one turn."""
    for ack in story.acks:
        log = logs.get(ack.session_id)
        if log is not None and (ack.seq > len(log) or log[ack.seq - 1].type != ack.type):
            yield f"{ack.type} was acknowledged as event {ack.seq} and is not there"
    of_key: dict[str, int] = {}
    for done in story.submitted:
        if done.session_id not in turns:
            continue
        found = [turn for turn in turns[done.session_id] if turn.turn_index == done.turn]
        if not found or found[0].prompt != done.prompt:
            yield f"the prompt {done.prompt!r} was acknowledged as turn {done.turn} and is lost"
        if of_key.setdefault(done.key, done.turn) != done.turn:
            yield f"{done.key} is turn {of_key[done.key]} and turn {done.turn}"
    for session_turns in turns.values():
        twice = [key for key, count in Counter(t.key for t in session_turns if t.key).items() if count > 1]
        if twice:
            yield f"keys were recorded twice: {twice}"


def _check_readers(story: Story, logs: dict[str, list[StoredEvent]]) -> Iterator[str]:
    for reader in story.readers:
        if reader.slot >= len(story.sessions):
            continue
        log = logs.get(story.sessions[reader.slot].session_id)
        if log is None:
            continue
        seen = [(event.seq, event.data) for event in reader.copy]
        if seen != [(event.seq, event.data) for event in log]:
            yield f"a reader saw events {[seq for seq, _ in seen]} of 1..{len(log)}"


def _check_heard(world: World, story: Story, turns: dict[str, list[TurnRow]]) -> Iterator[str]:
    """A prompt is handed over at most once for each turn that holds it, and a completed turn was heard."""
    holding: Counter[str] = Counter()
    done: Counter[str] = Counter()
    whole = {known.session_id for known in story.sessions} == turns.keys()
    for session_turns in turns.values():
        for turn in session_turns:
            if turn.first_seq is not None or turn.started_at is None:
                holding[turn.prompt] += turn.started_at is not None
                done[turn.prompt] += turn.outcome is Outcome.COMPLETED
    for prompt, count in world.heard.items():
        if whole and count > holding[prompt]:
            yield f"an agent heard {prompt!r} {count} times for {holding[prompt]} turns"
    for prompt, count in done.items():
        if world.heard[prompt] < count:
            yield f"{prompt!r} completed {count} times, and was heard {world.heard[prompt]} times"


def _check_decisions(world: World, story: Story) -> Iterator[str]:
    for known in story.sessions:
        view = SqliteView(world.disk.db, known.app)
        if view.session(known.session_id) is None:
            continue
        for row in view.permissions(known.session_id):
            wanted = story.decided.get(row.permission_id)
            if wanted is not None and row.decision != wanted:
                yield f"a permission was decided {wanted} and is {row.decision}"
