"""The hermes dialect's second answers against a real server: regenerate, and the cut before a prompt."""

from typing import Any

import httpx2
import pytest

from tests.api.harness import App
from tests.api.test_hermes_chat import frames, names, new, session, start, started

pytestmark = pytest.mark.on_both


def regenerate(app: App, session_id: str, revision: Any, **body: Any) -> httpx2.Response:
    wanted = {"session_id": session_id, "regenerate": True, "regeneration_revision": revision, **body}
    return app.http.post("/api/chat/start", json=wanted)


def talk(app: App, *prompts: str) -> str:
    session_id = new(app)
    for prompt in prompts:
        assert names(frames(app, started(app, session_id, prompt)))[-1] == "stream_end"
    return session_id


def rows(app: App, session_id: str) -> list[tuple[str, str]]:
    return [(row["role"], row["content"]) for row in session(app, session_id)["messages"]]


def test_the_last_answer_is_made_again_and_the_agent_has_forgotten_the_old_one(app: App) -> None:
    session_id = talk(app, "echo one", "count")
    before = session(app, session_id)
    reply = regenerate(app, session_id, before["regeneration_revision"])
    assert reply.status_code == 200, reply.text
    assert reply.json()["stream_id"] == f"{session_id}:3"
    assert reply.json()["pending_started_at"] > 0
    assert names(frames(app, f"{session_id}:3"))[-2:] == ["done", "stream_end"]
    # The agent counts what it remembers: with the old exchange in its memory it would say three.
    said = [("user", "echo one"), ("assistant", "one"), ("user", "count"), ("assistant", "turn=2")]
    assert rows(app, session_id) == said
    after = session(app, session_id)["regeneration_revision"]
    assert after not in (None, before["regeneration_revision"])


def test_an_answer_that_is_no_longer_the_last_is_not_made_again(app: App) -> None:
    """Nor is anything cut by a page that has not seen what was said since, or that asks twice."""
    session_id = talk(app, "echo one")
    old = session(app, session_id)["regeneration_revision"]
    assert names(frames(app, started(app, session_id, "echo two")))[-1] == "stream_end"
    for revision in (old, None, "", "7.7"):
        refused = regenerate(app, session_id, revision)
        assert (refused.status_code, refused.json()["code"]) == (409, "head_moved")
    assert len(rows(app, session_id)) == 4
    new_one = session(app, session_id)["regeneration_revision"]
    assert app.http.post("/api/session/rename", json={"session_id": session_id, "title": "other"}).is_success
    replies = [regenerate(app, session_id, new_one) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [200, 409]


def test_a_session_that_runs_or_has_said_nothing_has_no_answer_to_make_again(app: App) -> None:
    session_id = new(app)
    assert session(app, session_id)["regeneration_revision"] is None
    stream_id = started(app, session_id, "hang")
    assert session(app, session_id)["regeneration_revision"] is None
    assert regenerate(app, session_id, "1.1").status_code == 409
    app.http.get("/api/chat/cancel", params={"stream_id": stream_id})
    assert names(frames(app, stream_id))[-1] == "cancel"


def test_a_prompt_and_the_wish_for_another_answer_are_not_sent_together(app: App) -> None:
    session_id = talk(app, "echo one")
    revision = session(app, session_id)["regeneration_revision"]
    both = regenerate(app, session_id, revision, message="echo two")
    neither = app.http.post("/api/chat/start", json={"session_id": session_id})
    assert (both.status_code, neither.status_code) == (400, 400)
    assert "message" in neither.json()["error"]
    assert len(rows(app, session_id)) == 2


def test_another_app_has_nothing_made_again(app: App, other: App) -> None:
    session_id = talk(app, "echo one")
    revision = session(app, session_id)["regeneration_revision"]
    assert regenerate(other, session_id, revision).status_code == 404
    assert len(rows(app, session_id)) == 2


def test_a_cut_between_a_prompt_and_its_answer_takes_both(app: App) -> None:
    """The page of April keeps the prompt, as it thinks, and sends it again."""
    session_id = talk(app, "echo one", "echo two")
    body = {"session_id": session_id, "keep_count": 3}
    kept = app.http.post("/api/session/truncate", json=body).json()["session"]["messages"]
    assert [row["content"] for row in kept] == ["echo one", "one"]
    assert start(app, session_id, "count").status_code == 200
    assert names(frames(app, f"{session_id}:3"))[-1] == "stream_end"
    assert rows(app, session_id)[2:] == [("user", "count"), ("assistant", "turn=2")]
