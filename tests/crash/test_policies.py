"""A kill at ten moments of a turn, under each policy; the agent's own record says what it was given."""

from collections.abc import Callable

import pytest

from clawdforge.core.rules.interrupted import GO_ON
from tests.api.harness import until
from tests.crash.kit import Event, Forge

FIRST = "echo first"
HELD = {
    "started": "hang",
    "said": "echo partial said\nhang",
    "chunks": "chunks 5\nhang",
    "thought": "think hm\nhang",
    "tool": "tool reader 60000",
    "second tool": "tools 2 30\ntool slow 60000",
    "plan": "plan look|leap\nhang",
}
"""Prompts that stand still at a moment. What comes before it is on stable storage by then."""


def in_progress(event: Event, call: str) -> bool:
    params = event.get("params", {})
    return bool(params.get("status") == "in_progress" and params.get("toolCallId", "").endswith(call))


REACHED: dict[str, Callable[[Event], bool]] = {
    "said": lambda event: event.get("content") == "partial said",
    "chunks": lambda event: event.get("content") == "5 ",
    "thought": lambda event: event["type"] == "thinking",
    "tool": lambda event: in_progress(event, "_1"),
    "second tool": lambda event: in_progress(event, "_3"),
    "plan": lambda event: event["type"] == "plan",
}
PARTIAL = {"said": "partial said", "chunks": "1 2 3 4 5 ", "answered": "all of it"}
ASKING = "ask Leave to act\nhang"
STARTING = "echo never heard before the kill\nhang"
ANSWERED = "echo all of it\nsleep 1.5"
LOST = "echo never recorded"


def bring_to_its_moment(forge: Forge, policy: str) -> dict[str, str]:
    """One session for each moment; the server is frozen when this returns."""
    sessions = {name: forge.session(on_interrupt=policy) for name in (*HELD, "lost", "answered")}
    sessions["asking"] = forge.session(on_interrupt=policy, permission_mode="ask")
    sessions["starting"] = forge.session(on_interrupt=policy, agent="gated")
    for name, session_id in sessions.items():
        if name != "starting":
            forge.submit(session_id, FIRST)
    for name, session_id in sessions.items():
        if name != "starting":
            assert forge.ended(session_id, 1)["outcome"] == "completed"
    forge.gate.touch()
    forge.submit(sessions["starting"], STARTING)
    forge.submit(sessions["asking"], ASKING)
    for name, prompt in HELD.items():
        forge.submit(sessions[name], prompt)
    for name, reached in REACHED.items():
        forge.seen(sessions[name], reached, name)
    forge.seen(sessions["asking"], lambda event: event["type"] == "permission.requested", "the request")
    until(lambda: forge.handed()[HELD["started"]], "the prompt in the agent's hands")
    forge.submit(sessions["answered"], ANSWERED)
    forge.seen(sessions["answered"], lambda event: event.get("content") == "all of it", "its answer")
    forge.freeze()
    until(lambda: forge.memory_files(sessions["answered"]).count('"assistant"') == 2, "its end")
    return sessions


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["hold", "continue", "retry"])
def test_ten_moments(forge: Callable[..., Forge], policy: str) -> None:
    crash = forge(MAX_LIVE_AGENTS="20")
    sessions = bring_to_its_moment(crash, policy)
    lost = sessions.pop("lost")
    socket = crash.post_unread(f"/sessions/{lost}/turns", {"prompt": LOST}, "key-1")
    before = crash.handed()
    crash.kill()
    socket.close()
    crash.gate.unlink()
    crash.restart()
    prompts = {**HELD, "asking": ASKING, "starting": STARTING, "answered": ANSWERED}
    for name, session_id in sessions.items():
        cut_off = 1 if name == "starting" else 2
        turn = crash.turns(session_id)[cut_off - 1]
        assert (turn["outcome"], turn["code"]) == ("interrupted", "turn_interrupted"), name
        {"hold": held, "continue": went_on, "retry": tried_again}[policy](
            crash, session_id, name, prompts[name], before
        )
        crash.check(session_id)
    assert [turn["prompt"] for turn in crash.turns(lost)] == [FIRST]
    for _ in range(2):
        body, key = {"prompt": LOST}, {"Idempotency-Key": "key-1"}
        assert crash.http.post(f"/sessions/{lost}/turns", json=body, headers=key).status_code == 202
    crash.ended(lost, 2)
    assert crash.handed()[LOST] == 1
    assert len(crash.turns(lost)) == 2


def held(crash: Forge, session_id: str, name: str, prompt: str, before: dict[str, int]) -> None:
    """Nothing runs by itself. The next turn finds an agent that knows of the half turn, once."""
    assert crash.turns(session_id)[-1]["outcome"] == "interrupted"
    if name in PARTIAL:
        partial = [m for m in crash.messages(session_id) if m["role"] == "assistant"][-1]
        assert partial["content"] == PARTIAL[name]
    crash.turn(session_id, "echo what was missed is told before this")
    known = crash.said(session_id, "recall all")
    assert crash.handed()[prompt] == before.get(prompt, 0) <= 1, "handed over again"
    first_line = prompt.split("\n", maxsplit=1)[0]
    assert known.count(first_line) == 1, (name, known)
    pending = [m["content"] for m in crash.messages(session_id) if m["pending"]]
    assert pending == []


def went_on(crash: Forge, session_id: str, name: str, prompt: str, before: dict[str, int]) -> None:
    """A new turn tells the agent to go on; the prompt itself is not sent again."""
    again = crash.turns(session_id)[-1]
    assert (again["prompt"], again["retry_of"]) == (GO_ON, again["turn_index"] - 1)
    assert crash.ended(session_id, again["turn_index"])["outcome"] == "completed"
    assert crash.handed()[prompt] == before.get(prompt, 0) <= 1, "handed over again"
    known = crash.remembered(session_id)
    assert known.count(prompt) == before.get(prompt, 0), (name, known)
    assert known.count(GO_ON) == 1
    assert prompt.split("\n", maxsplit=1)[0] in crash.said(session_id, "recall all")


def tried_again(crash: Forge, session_id: str, name: str, prompt: str, before: dict[str, int]) -> None:
    """The half turn is gone from the agent's memory, and the prompt is there once more: once."""
    cut, again = crash.turns(session_id)[-2:]
    assert (cut["cut"], again["prompt"], again["retry_of"]) == (True, prompt, cut["turn_index"])
    until(lambda: crash.handed()[prompt] == before.get(prompt, 0) + 1, f"{name}: the second try")
    crash.http.post(f"/sessions/{session_id}/cancel", json={})
    assert crash.ended(session_id, again["turn_index"])["outcome"] in ("cancelled", "completed")
    first = [] if name == "starting" else [FIRST]
    assert crash.remembered(session_id) == [*first, prompt], name
    assert [m["content"] for m in crash.messages(session_id) if m["role"] == "user"] == [
        *first,
        prompt,
        "recall",
    ]
    assert crash.handed()[prompt] == before.get(prompt, 0) + 1
