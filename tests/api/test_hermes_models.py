"""The models of the hermes dialect: what its page can choose, and that a choice takes nothing away."""

from typing import Any

import pytest

from tests.api.harness import App
from tests.api.test_hermes_page import new, said

pytestmark = pytest.mark.on_both


def test_the_picker_has_the_models_that_the_app_knows(app: App, other: App) -> None:
    own = new(app)
    assert own["model"] == "default"
    named = new(app, model="m2")["session_id"]
    new(other, model="foreign")
    app.http.put("/personas/quick", json={"agent": "claude", "model": "small"})
    found = app.http.get("/api/models").json()
    assert found["default_model"] == "default"
    assert [row["id"] for row in found["groups"][0]["models"]] == ["default", "m2", "small"]
    for session_id, kept in ((own["session_id"], "default"), (named, "m2")):
        body = {"session_id": session_id, "message": "echo hi", "model": "default"}
        assert app.http.post("/api/chat/start", json=body).json()["effective_model"] == kept
        changed = app.http.post("/api/session/update", json={"session_id": session_id, "model": "default"})
        assert changed.json()["session"]["model"] == kept
    assert new(app, model="default")["model"] == "default"
    assert app.http.get("/api/models").json() == found, "the agent's own is not named twice"


def test_a_picker_that_speaks_with_every_message_takes_no_memory_away(app: App) -> None:
    session_id = new(app)["session_id"]
    for message, model in (("echo the blue door", "default"), ("echo on", "m2"), ("recall", "m3")):
        body = {"session_id": session_id, "message": message, "model": model}
        started = app.http.post("/api/chat/start", json=body).json()
        with app.stream("/api/chat/stream", params={"stream_id": started["stream_id"]}) as reader:
            list(reader)
    assert said(app, session_id)[-1] == '["echo the blue door", "echo on"]', "in its own memory"
    changed = app.http.post("/api/session/update", json={"session_id": session_id, "model": "m4"}).json()
    assert changed["session"]["model"] == "m4"
    app.turn(session_id, "recall")
    assert "echo the blue door" in said(app, session_id)[-1]


def test_what_was_given_with_a_model_is_kept_until_another_is_chosen(app: App) -> None:
    made = new(app, model="m1", model_provider="some")
    assert (made["model"], made["model_provider"]) == ("m1", "some")
    named = {"session_id": made["session_id"]}
    app.http.patch(f"/sessions/{made['session_id']}", json={"meta": {"model_provider": "some", "own": 1}})

    def update(**body: Any) -> tuple[str, str | None]:
        reply = app.http.post("/api/session/update", json={**named, **body}).json()["session"]
        return reply["model"], reply["model_provider"]

    assert update(model="m2", model_provider="other") == ("m2", "other")
    assert update(model="default") == ("m2", "other")
    assert update(model="m3") == ("m3", None)
    for provider, kept in (("third", "third"), ("", None)):
        body = {**named, "message": "echo hi", "model": f"m-{provider}", "model_provider": provider}
        started = app.http.post("/api/chat/start", json=body).json()
        with app.stream("/api/chat/stream", params={"stream_id": started["stream_id"]}) as reader:
            list(reader)
        shown = app.http.get("/api/session", params=named).json()["session"]
        assert shown["model_provider"] == kept
    meta = app.http.get(f"/sessions/{made['session_id']}").json()["meta"]
    assert meta == {"own": 1}, "what others keep there stays"
    assert new(app)["model_provider"] is None
