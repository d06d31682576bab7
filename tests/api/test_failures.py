"""Agents that fail: they are replaced, unheard prompts are said again or marked, kinds are told apart."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.harness import AGENT, App, Server, until


def turn_of(app: App, session_id: str, index: int) -> dict[str, Any]:
    turns = app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
    return next(turn for turn in turns if turn["turn_index"] == index)


def events_of(app: App, session_id: str, kind: str) -> list[dict[str, Any]]:
    page = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    return [event for event in page if event["type"] == kind]


def said(reply: Any) -> str:
    assert reply.status_code == 200, reply.text
    return "".join(event["content"] for event in reply.json()["events"] if event["type"] == "text")


def test_an_agent_whose_inside_died_is_replaced_and_the_caller_does_not_notice(app: App) -> None:
    """What it worked with is gone, so it knows its session no longer; a new process loads it."""
    session_id = app.session()
    assert app.turn(session_id, "echo one\nforget-session").status_code == 200
    assert said(app.turn(session_id, "count")) == "turn=2"
    retried = events_of(app, session_id, "turn.retried")
    assert [(event["code"], event["wait_secs"]) for event in retried] == [("agent_failed", 0.0)]
    assert [event["how"] for event in events_of(app, session_id, "context.started")] == ["new", "loaded"]
    assert turn_of(app, session_id, 2)["heard"] is True


def test_a_turn_that_fails_in_the_agents_works_ends_its_process(app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo one")
    failed = app.turn(session_id, "error TypeError: undefined is not a function")
    assert (failed.status_code, failed.json()["code"]) == (502, "agent_failed")
    assert said(app.turn(session_id, "count")) == "turn=3"
    assert [event["how"] for event in events_of(app, session_id, "context.started")] == ["new", "loaded"]


@pytest.mark.parametrize(
    ("words", "code", "retry_after"),
    [
        ("API Error: 529 overloaded_error; retry after 3600", "model_overloaded", 3600.0),
        ("API Error: 429 rate_limit_error; try again in 2 hours", "model_rate_limited", 7200.0),
        ("Your credit balance is too low", "model_no_credit", None),
        ("prompt is too long: 214000 tokens", "context_too_long", None),
        ("API Error: 403 permission_error", "model_refused", None),
        ("API Error: 401 invalid x-api-key", "agent_auth_required", None),
    ],
)
def test_a_providers_failure_is_told_by_its_kind_and_marks_the_prompt_as_unheard(
    app: App, words: str, code: str, retry_after: float | None
) -> None:
    session_id = app.session()
    failed = app.turn(session_id, f"error {words}")
    body = failed.json()
    assert (failed.status_code, body["code"], body["heard"]) == (502, code, False), body
    assert failed.headers.get("Retry-After") == (None if retry_after is None else f"{retry_after:.0f}")
    turn = turn_of(app, session_id, 1)
    assert (turn["heard"], turn["retry_after"], turn["outcome"]) == (False, retry_after, "failed")
    assert events_of(app, session_id, "turn.ended")[0]["heard"] is False
    assert events_of(app, session_id, "turn.retried") == []
    assert said(app.turn(session_id, "echo fine")) == "fine"


def test_a_prompt_that_was_turned_away_is_given_to_an_agent_that_has_not_heard_it(app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo one")
    words = "error-once tried API Error: 429 rate_limit_error; try again in 0.01 s"
    assert said(app.turn(session_id, f"{words}\ncount\necho  done")) == "turn=2 done"
    retried = events_of(app, session_id, "turn.retried")
    assert [(event["turn"], event["code"]) for event in retried] == [(2, "model_rate_limited")]
    hows = [event["how"] for event in events_of(app, session_id, "context.started")]
    assert hows == ["new", "restored"]
    assert turn_of(app, session_id, 2)["heard"] is True


def test_a_first_prompt_that_was_turned_away_finds_an_empty_home(app: App) -> None:
    session_id = app.session()
    words = "error-once tried 529 overloaded; retry after 0.01"
    assert said(app.turn(session_id, f"{words}\ncount")) == "turn=1"
    assert said(app.turn(session_id, "count")) == "turn=2"


def test_what_was_begun_is_never_said_again(app: App) -> None:
    session_id = app.session()
    failed = app.turn(session_id, "echo half\nerror API Error: 529 overloaded; retry after 0.01")
    assert (failed.status_code, failed.json()["code"]) == (502, "model_overloaded")
    assert "heard" not in failed.json()
    assert events_of(app, session_id, "turn.retried") == []
    assert turn_of(app, session_id, 1)["heard"] is True


def test_a_wait_for_the_provider_can_be_cancelled(app: App) -> None:
    session_id = app.session()
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "error 529 overloaded; retry after 50"})
    until(lambda: events_of(app, session_id, "turn.retried"), "a wait")
    assert app.http.post(f"/sessions/{session_id}/cancel", json={}).json()["cancelled"] == 1
    assert turn_of(app, session_id, 1)["outcome"] == "cancelled"
    assert said(app.turn(session_id, "count")) == "turn=2", "nobody was given it again"
    assert len(events_of(app, session_id, "turn.retried")) == 1


def test_a_prompt_that_reached_no_agent_is_marked(app: App) -> None:
    session_id = app.session(agent="dies")
    assert app.turn(session_id, "hello").json()["code"] == "agent_start_failed"
    assert turn_of(app, session_id, 1)["heard"] is False


def test_an_agent_is_told_what_it_had_said_before_it_died(app: App) -> None:
    """Its own memory has the prompt and not the answer, which it had no time to keep."""
    session_id = app.session()
    app.turn(session_id, "echo one")
    assert app.turn(session_id, "echo the half of it\ncrash").status_code == 502
    assert said(app.turn(session_id, "count")) == "turn=3"
    remembered = said(app.turn(session_id, "recall all"))
    assert "Your last answer was cut off" in remembered
    assert "Assistant: the half of it" in remembered
    assert remembered.count("the half of it") == 2, "in its prompt, and as it was told"


def test_an_agent_that_forgets_what_was_cancelled_is_told_of_it(tmp_path: Path) -> None:
    config = tmp_path / "clawdforge.toml"
    config.write_text(f'[agents.gemini]\ncommand = "{AGENT}"\n')
    server = Server(tmp_path / "data", {}, "--config", str(config))
    try:
        app = server.app()
        session_id = app.session(agent="gemini")
        app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo half\nhang"})
        until(lambda: events_of(app, session_id, "text"), "its first words")
        assert app.http.post(f"/sessions/{session_id}/cancel", json={}).json()["cancelled"] == 1
        app.turn(session_id, "echo next")
        remembered = said(app.turn(session_id, "recall all"))
        assert remembered.count("[Conversation so far]") == 1
        assert "this turn was cancelled here" in remembered
    finally:
        server.stop()
