"""The history checker: acknowledgements, log, turns, messages, a reader's copy and the agent's own record."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofs.kit.client import Ack, Client

ENDED = "turn.ended"


@dataclass
class History:
    """Everything that is known about one session afterwards."""

    session: str
    events: list[Any]
    turns: list[Any]
    messages: list[Any]
    acks: list[Ack]
    copy: Sequence[bytes] | None = None
    heard: Counter[str] | None = None
    policy: str | None = None
    """What the session does about a turn that was cut off, where nobody asked for a retry."""
    whole: dict[str, str] = field(default_factory=dict)
    """Prompt → the text that its turn says when nothing cuts it off."""


async def fetch(client: Client, session: str) -> History:
    turns = await client.wait_ended(session)
    events = await client.pages(f"/sessions/{session}/events", "events")
    messages = await client.pages(f"/sessions/{session}/messages?all=true", "messages")
    acks = [ack for ack in client.acks if ack.session == session]
    return History(session, events, turns, messages, acks)


def heard(witness: Path) -> Counter[str]:
    """How often each prompt reached an agent, by the agent's own record."""
    lines = witness.read_bytes().splitlines() if witness.exists() else []
    return Counter(json.loads(line)["prompt"] for line in lines)


def check(history: History) -> list[str]:
    """The violations, in words; empty when all is well."""
    rules = (_numbers, _lives, _acks, _messages, _copy, _heard, _policy)
    return [f"{history.session[:8]}: {text}" for rule in rules for text in rule(history)]


def _numbers(history: History) -> Iterable[str]:
    seqs = [event["seq"] for event in history.events]
    if seqs != list(range(1, len(seqs) + 1)):
        missing = sorted(set(range(1, len(seqs) + 1)) - set(seqs))
        yield f"the log is not 1..{len(seqs)}: missing {missing[:5]}, last {seqs[-3:]}"


def _lives(history: History) -> Iterable[str]:
    """Each turn is queued once, started at most once, ended once, in this order; never two at a time."""
    lives: dict[int, list[str]] = {}
    running: int | None = None
    for event in history.events:
        turn, kind = event["turn"], event["type"]
        if turn is None:
            continue
        lives.setdefault(turn, [])
        if kind.startswith("turn."):
            lives[turn].append(kind)
        elif turn != running and "jsonrpc" in event:
            yield f"event {event['seq']} of turn {turn} while {running} runs"
        if kind == "turn.started":
            if running is not None:
                yield f"turn {turn} started while {running} runs"
            running = turn
        if kind == ENDED and turn == running:
            running = None
    indexes = [turn["turn_index"] for turn in history.turns]
    if indexes != list(range(1, len(indexes) + 1)):
        yield f"the turns are not 1..n: {indexes[:10]}"
    for turn in history.turns:
        index, life = turn["turn_index"], lives.pop(turn["turn_index"], [])
        if life not in (["turn.queued", "turn.started", ENDED], ["turn.queued", ENDED]):
            yield f"turn {index} lived {life}"
        if turn["state"] != "ended" or not turn["outcome"]:
            yield f"turn {index} is {turn['state']} with outcome {turn['outcome']}"
    if lives:
        yield f"the log tells of turns that are not there: {sorted(lives)[:5]}"


def _acks(history: History) -> Iterable[str]:
    turns = {turn["turn_index"]: turn for turn in history.turns}
    of_key: dict[str, int] = {}
    for ack in history.acks:
        turn = turns.get(ack.turn)
        if turn is None:
            yield f"acknowledged turn {ack.turn} ({ack.key}) is lost"
        elif turn["prompt"] != ack.prompt:
            yield f"turn {ack.turn} holds another prompt than was acknowledged for {ack.key}"
        if of_key.setdefault(ack.key, ack.turn) != ack.turn:
            yield f"key {ack.key} is turn {of_key[ack.key]} and turn {ack.turn}"
    own = [turn for turn in history.turns if turn["retry_of"] is None]
    prompts = Counter(turn["prompt"] for turn in own)
    twice = [prompt for prompt, count in prompts.items() if count > 1]
    if twice:
        yield f"{len(twice)} prompts are turns twice, such as {twice[0]!r}"
    if history.acks and len(own) != len(of_key):
        known = {*of_key.values()}
        extra = [turn for turn in own if turn["turn_index"] not in known]
        yield f"{len(own)} turns for {len(of_key)} keys; without one: {extra[:3]!r}"[:2000]


def _messages(history: History) -> Iterable[str]:
    """A started turn has one user message, and what was streamed is what the answer says, cut off or not."""
    said: dict[int, str] = {}
    started = set()
    for event in history.events:
        if event["type"] == "turn.started":
            started.add(event["turn"])
        if event["type"] == "text":
            said[event["turn"]] = said.get(event["turn"], "") + event["content"]
    asked = Counter(m["turn"] for m in history.messages if m["role"] == "user")
    answered = {m["turn"]: m["content"] for m in history.messages if m["role"] == "assistant"}
    seqs = [message["seq"] for message in history.messages]
    if seqs != sorted(set(seqs)):
        yield "the messages' numbers do not rise"
    for turn in history.turns:
        index = turn["turn_index"]
        if turn["cut"]:
            continue
        if asked[index] != (index in started):
            yield f"turn {index} has {asked[index]} user messages"
        if answered.get(index, "") != said.get(index, ""):
            yield f"turn {index}: the answer is not what was streamed"
        whole = history.whole.get(turn["prompt"])
        text = said.get(index, "")
        if whole is not None and turn["outcome"] == "completed" and text != whole:
            yield f"turn {index} completed, but said {text[:60]!r}"
        if whole is not None and not whole.startswith(text):
            yield f"turn {index} said what it was not told to: {text[:60]!r}"


def _copy(history: History) -> Iterable[str]:
    """A reader saw the log: no event lost, repeated, out of order, or other than it is stored."""
    if history.copy is None:
        return
    if len(history.copy) != len(history.events):
        yield f"the reader has {len(history.copy)} events, the log {len(history.events)}"
    for seen, event in zip(history.copy, history.events, strict=False):
        if json.loads(seen) != event:
            yield f"the reader's event {event['seq']} is not the log's"
            return


def _heard(history: History) -> Iterable[str]:
    """A prompt reaches the agent once for each turn that holds it, at most; and if it completed, at least."""
    if history.heard is None:
        return
    for prompt, turns in _by_prompt(history.turns).items():
        count = history.heard[prompt]
        done = sum(turn["outcome"] == "completed" for turn in turns)
        if not done <= count <= len(turns):
            yield f"the agent heard {prompt[:40]!r} {count} times for {len(turns)} turns"


def _policy(history: History) -> Iterable[str]:
    """What was cut off is tried again once by itself if the session wants it so, and never in a loop."""
    if history.policy is None:
        return
    again = Counter(turn["retry_of"] for turn in history.turns)
    for turn in history.turns:
        cut_off = turn["outcome"] == "interrupted" and turn["retry_of"] is None
        wanted = int(cut_off and history.policy != "hold")
        index, count = turn["turn_index"], again[turn["turn_index"]]
        if count != wanted:
            yield f"turn {index} ({history.policy}, {turn['outcome']}) was tried again {count} times"


def _by_prompt(turns: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for turn in turns:
        found.setdefault(turn["prompt"], []).append(turn)
    return {prompt: group for prompt, group in found.items() if group[0]["retry_of"] is None}
