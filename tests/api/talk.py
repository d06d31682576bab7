"""Talking to a session in tests: what was answered, what is remembered, what is seen."""

import json
from typing import Any

import httpx2

from tests.api.harness import App, until


def say(app: App, session_id: str, prompt: str) -> str:
    """A whole turn; the text of its answer."""
    reply = app.turn(session_id, prompt)
    assert reply.status_code == 200, reply.text
    return "".join(event["content"] for event in reply.json()["events"] if event["type"] == "text")


def recall(app: App, session_id: str) -> list[str]:
    """The prompts that the agent itself remembers; asking is a turn, which is taken back again."""
    found: list[str] = json.loads(say(app, session_id, "recall"))
    do(app, session_id, "undo")
    return found


def knows(app: App, session_id: str) -> str:
    """All that the agent has in its memory, a transcript that it was told included. Takes two turns."""
    say(app, session_id, "echo and now?")
    return say(app, session_id, "recall all")


def begin(app: App, sid: str) -> None:
    """A turn that has said its first words, and says no more."""

    def said() -> list[Any]:
        events = app.http.get(f"/sessions/{sid}/events", params={"limit": 1000}).json()["events"]
        return [event for event in events if event["type"] == "text" and event["content"] == "begun"]

    app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo begun\nhang"})
    until(said, "the turn's first words")


def post(app: App, session_id: str, what: str, **body: Any) -> httpx2.Response:
    return app.http.post(f"/sessions/{session_id}/{what}", json=body)


def do(app: App, session_id: str, what: str, **body: Any) -> dict[str, Any]:
    """An operation on history that has to succeed."""
    reply = post(app, session_id, what, **body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def state(app: App, session_id: str) -> dict[str, Any]:
    found: dict[str, Any] = app.http.get(f"/sessions/{session_id}").json()
    return found


def messages(app: App, session_id: str, **params: Any) -> list[dict[str, Any]]:
    page = app.http.get(f"/sessions/{session_id}/messages", params={"limit": 1000, **params}).json()
    found: list[dict[str, Any]] = page["messages"]
    return found


def texts(app: App, session_id: str, **params: Any) -> list[str]:
    return [message["content"] for message in messages(app, session_id, **params)]


def everywhere(app: App, session_id: str) -> str:
    """What any reader but the log can see of a session."""
    http = app.http
    parts = [
        http.get(f"/sessions/{session_id}/messages", params={"all": True, "limit": 1000}),
        http.get(f"/sessions/{session_id}/export"),
        *(http.get(f"/sessions/{session_id}/export", params={"format": form}) for form in ("md", "html")),
    ]
    return "\n".join(part.text for part in parts)


def found(app: App, q: str) -> list[tuple[str, int]]:
    hits = app.http.get("/search", params={"q": q}).json()["hits"]
    return [(hit["session_id"], hit["seq"]) for hit in hits]


def how(app: App, session_id: str) -> list[str]:
    """How each context got its memory."""
    events = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    return [event["how"] for event in events if event["type"] == "context.started"]
