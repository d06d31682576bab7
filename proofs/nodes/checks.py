"""What must hold of a session after everything: its log, its readers, and what its agents heard."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from proofs.nodes.load import Talk

Event = dict[str, Any]
GOOD = ("completed", "interrupted")


def check_log(talk: Talk, events: Sequence[Event]) -> Iterable[str]:
    """No gap; every acknowledged prompt is a turn that began at most once and ended once."""
    seqs = [event["seq"] for event in events]
    if seqs != list(range(1, len(seqs) + 1)):
        yield f"numbers with gaps: {seqs}"
    begun = Counter(event["turn"] for event in events if event["type"] == "turn.started")
    ended = Counter(event["turn"] for event in events if event["type"] == "turn.ended")
    if max(begun.values(), default=0) > 1:
        yield f"begun twice: {begun}"
    if ended != Counter(list(talk.acknowledged)):
        yield f"ended {ended}, not {sorted(talk.acknowledged)}"
    for turn, prompt in talk.acknowledged.items():
        yield from _check_words(turn, prompt, [event for event in events if event["turn"] == turn])
    yield from _check_holders(events)


def _check_words(turn: int, prompt: str, events: Sequence[Event]) -> Iterable[str]:
    """What a turn says is its own, in order, and all of it if it was completed."""
    said = [event["content"] for event in events if event["type"] == "text"]
    wanted = [line.removeprefix("echo ") for line in prompt.splitlines() if line.startswith("echo ")]
    end = next((event for event in events if event["type"] == "turn.ended"), None)
    outcome = None if end is None else end["outcome"]
    if end is None or not (outcome in GOOD or _is_unheard(end)):
        yield f"turn {turn}: {end}"
    if said != (wanted if outcome == "completed" else wanted[: len(said)]):
        yield f"turn {turn}, {outcome}: {said} instead of {wanted}"


def _is_unheard(end: Event) -> bool:
    """Whether the store was away while the turn's agent was being started, and the caller is told so."""
    return (end["outcome"], end["code"], end.get("heard")) == ("failed", "store_unavailable", False)


def _check_holders(events: Sequence[Event]) -> Iterable[str]:
    """A turn is run under one claim: what one says never stands among another's, nor outside of its own."""
    running: int | None = None
    for event in events:
        kind, turn = event["type"], event["turn"]
        if kind == "turn.started":
            if running is not None:
                yield f"turn {turn} begins in turn {running}, at {event['seq']}"
            running = turn
        elif kind == "turn.ended" and turn == running:
            running = None
        elif kind == "text" and turn != running:
            yield f"words of turn {turn} at {event['seq']}, while {running} runs: {event['content']}"


def check_reader(talk: Talk, events: Sequence[Event]) -> Iterable[str]:
    """It saw each event once, and nothing that is not in the log in the end: what was told is kept."""
    wanted = [event["seq"] for event in events]
    if talk.seen != wanted:
        twice = [seq for seq, count in Counter(talk.seen).items() if count > 1]
        missing = sorted(set(wanted) - set(talk.seen))
        yield f"a reader saw {len(talk.seen)} of {len(wanted)} events; twice {twice}, missing {missing}"
    for event in events:
        told = talk.told.get(event["seq"])
        if told is not None and json.loads(told) != event:
            yield f"a reader was told {told!r}, and the log says {event}"


def check_heard(talks: Sequence[Talk], witnesses: Sequence[Path]) -> Iterable[str]:
    """Each prompt is heard by one agent at most: it is not run again by itself."""
    lines = [line for path in witnesses for line in path.read_bytes().splitlines()]
    heard = Counter(json.loads(line)["prompt"].rpartition("echo ")[2] for line in lines)
    for talk in talks:
        for turn, prompt in talk.acknowledged.items():
            times = heard[prompt.rpartition("echo ")[2]]
            if times > 1:
                yield f"{talk.session} turn {turn} was heard {times} times"
