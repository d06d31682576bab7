"""The three dialects behind one set of verbs, so that one list of scenarios runs over all of them."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import httpx2

from tests.api.harness import App, until

Feature = Literal["permission", "cancel", "history", "tokens"]


@dataclass(frozen=True)
class Missing:
    """Why a dialect leaves a scenario out."""

    feature: Feature
    reason: str


@dataclass(frozen=True)
class Seen:
    """One frame of a stream: where to resume, what the answer said, whether the turn is over."""

    id: str
    text: str
    over: bool


class Dialect(Protocol):
    """A caller's view of the server. Prompts are answered whole; streams are read from a cursor."""

    name: str
    missing: tuple[Missing, ...]

    def create(self, app: App, *, ask: bool = False) -> str: ...
    def prompt(self, app: App, session_id: str, text: str) -> int:
        """Submit, and give the turn's index."""
        ...

    def transcript(self, app: App, session_id: str) -> list[tuple[str, str]]: ...
    def stream(self, app: App, session_id: str, turn: int, after: str) -> "Reading": ...
    def cancel(self, app: App, session_id: str, turn: int) -> None: ...
    def allow(self, app: App, session_id: str) -> None: ...
    def undo(self, app: App, session_id: str) -> httpx2.Response: ...
    def read(self, app: App, session_id: str) -> httpx2.Response: ...
    def running(self, app: App, session_id: str) -> bool: ...


Reading = AbstractContextManager[Iterator[Seen]]


class Forge:
    name = "forge"
    missing: tuple[Missing, ...] = ()

    def create(self, app: App, *, ask: bool = False) -> str:
        mode = "ask" if ask else "approve_all"
        return app.session(permission_mode=mode, retention="keep")

    def prompt(self, app: App, session_id: str, text: str) -> int:
        reply = app.http.post(f"/sessions/{session_id}/turns", json={"prompt": text})
        assert reply.status_code == 202, reply.text
        return int(reply.json()["turn_index"])

    def transcript(self, app: App, session_id: str) -> list[tuple[str, str]]:
        found = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
        return [(message["role"], message["content"]) for message in found]

    @contextmanager
    def stream(self, app: App, session_id: str, turn: int, after: str) -> Iterator[Iterator[Seen]]:
        headers = {"Last-Event-ID": after} if after else {}
        with app.stream(f"/sessions/{session_id}/events", headers=headers) as found:
            yield (self._seen(frame.id, json.loads(frame.data), turn) for frame in found)

    def _seen(self, id_: str, event: Any, turn: int) -> Seen:
        mine = event["turn"] == turn
        text = event["content"] if event["type"] == "text" and mine else ""
        return Seen(id_, text, over=mine and event["type"] == "turn.ended")

    def cancel(self, app: App, session_id: str, turn: int) -> None:  # noqa: ARG002 - one verb for all
        assert app.http.post(f"/sessions/{session_id}/cancel", json={}).json()["cancelled"] == 1

    def allow(self, app: App, session_id: str) -> None:
        path = f"/sessions/{session_id}/permissions"
        rows = until(lambda: app.http.get(path, params={"state": "pending"}).json()["permissions"], "the ask")
        body = {"decision": "allow_once"}
        assert app.http.post(f"{path}/{rows[0]['permission_id']}", json=body).status_code == 200

    def undo(self, app: App, session_id: str) -> httpx2.Response:
        return app.http.post(f"/sessions/{session_id}/undo", json={})

    def read(self, app: App, session_id: str) -> httpx2.Response:
        return app.http.get(f"/sessions/{session_id}")

    def running(self, app: App, session_id: str) -> bool:
        return self.read(app, session_id).json()["running_turn"] is not None


class Hermes:
    name = "hermes"
    missing: tuple[Missing, ...] = ()

    def create(self, app: App, *, ask: bool = False) -> str:
        body = {"permission_mode": "ask"} if ask else {}
        return str(app.http.post("/api/session/new", json=body).json()["session"]["session_id"])

    def prompt(self, app: App, session_id: str, text: str) -> int:
        body = {"session_id": session_id, "message": text}
        reply = app.http.post("/api/chat/start", json=body)
        assert reply.status_code == 200, reply.text
        return int(reply.json()["stream_id"].rsplit(":", 1)[1])

    def transcript(self, app: App, session_id: str) -> list[tuple[str, str]]:
        found = self.read(app, session_id).json()["session"]["messages"]
        return [(message["role"], message["content"]) for message in found]

    @contextmanager
    def stream(self, app: App, session_id: str, turn: int, after: str) -> Iterator[Iterator[Seen]]:
        headers = {"Last-Event-ID": after} if after else {}
        query = {"stream_id": f"{session_id}:{turn}"}
        with app.stream("/api/chat/stream", params=query, headers=headers) as found:
            yield map(self._seen, found)

    def _seen(self, frame: Any) -> Seen:
        text = json.loads(frame.data)["text"] if frame.event == "token" else ""
        return Seen(frame.id, text, over=frame.event in ("stream_end", "cancel", "apperror"))

    def cancel(self, app: App, session_id: str, turn: int) -> None:
        query = {"stream_id": f"{session_id}:{turn}"}
        assert app.http.get("/api/chat/cancel", params=query).json()["cancelled"] is True

    def allow(self, app: App, session_id: str) -> None:
        query = {"session_id": session_id}
        until(lambda: app.http.get("/api/approval/pending", params=query).json()["pending"], "the ask")
        body = {**query, "choice": "once"}
        assert app.http.post("/api/approval/respond", json=body).status_code == 200

    def undo(self, app: App, session_id: str) -> httpx2.Response:
        return app.http.post("/api/session/undo", json={"session_id": session_id})

    def read(self, app: App, session_id: str) -> httpx2.Response:
        return app.http.get("/api/session", params={"session_id": session_id})

    def running(self, app: App, session_id: str) -> bool:
        reply = app.http.get("/api/session/status", params={"session_id": session_id})
        return bool(reply.json()["agent_running"])


class Deepagent:
    name = "deepagent"
    missing: tuple[Missing, ...] = (
        Missing("permission", "its callers were never asked; the forge route decides for its sessions"),
        Missing("cancel", "it has no such route; the session's forge route cancels"),
        Missing("history", "it has no such route; it shows what the others took back as gone"),
        Missing("tokens", "its stream is one of whole messages"),
    )

    def create(self, app: App, *, ask: bool = False) -> str:
        assert not ask
        return str(app.http.post("/api/sessions", json={}).json()["session_id"])

    def prompt(self, app: App, session_id: str, text: str) -> int:
        reply = app.http.post(f"/api/sessions/{session_id}/messages", json={"content": text, "run": True})
        assert reply.status_code == 200, reply.text
        return int(reply.json()["turn_index"])

    def transcript(self, app: App, session_id: str) -> list[tuple[str, str]]:
        found = self.read(app, session_id).json()["messages"]
        return [(message["role"], message["content"]) for message in found]

    @contextmanager
    def stream(self, app: App, session_id: str, turn: int, after: str) -> Iterator[Iterator[Seen]]:
        headers = {"Last-Event-ID": after} if after else {}
        with app.stream(f"/api/sessions/{session_id}/stream", headers=headers) as found:
            yield (self._seen(frame.id, json.loads(frame.data), turn) for frame in found)

    def _seen(self, id_: str, message: Any, turn: int) -> Seen:
        mine = message["turn"] == turn and message["role"] == "assistant"
        return Seen(id_, message["content"] if mine else "", over=mine)

    def cancel(self, app: App, session_id: str, turn: int) -> None:
        raise NotImplementedError(self.missing)

    def allow(self, app: App, session_id: str) -> None:
        raise NotImplementedError(self.missing)

    def undo(self, app: App, session_id: str) -> httpx2.Response:
        raise NotImplementedError(self.missing)

    def read(self, app: App, session_id: str) -> httpx2.Response:
        return app.http.get(f"/api/sessions/{session_id}")

    def running(self, app: App, session_id: str) -> bool:
        return any(message["pending"] for message in self.read(app, session_id).json()["messages"])


DIALECTS: tuple[Dialect, ...] = (Forge(), Hermes(), Deepagent())


def upto_end(frames: Iterator[Seen]) -> list[Seen]:
    """Everything up to the frame that ends the turn."""
    found: list[Seen] = []
    for frame in frames:
        found.append(frame)
        if frame.over:
            return found
    raise AssertionError("the stream ended before the turn")
