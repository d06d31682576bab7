"""A turn as AG-UI's events and as Vercel's UI message stream: whole, sent again, resumed, and failing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from tests.api.harness import App, Server, until

PROMPT = "think hm\necho one\ntool read\necho two"


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("ui") / "data", {"CLAWDFORGE_FACES": "agui,vercel"})
    yield found
    found.stop()


@pytest.fixture
def mine(face: Server) -> Iterator[App]:
    with face.closing_clients():
        yield face.app()


def run(text: Any, run_id: str = "run-1", **more: Any) -> Any:
    message = {"id": "m", "role": "user", "content": text}
    return {"threadId": "t", "runId": run_id, "messages": [message], **more}


def chat(text: str, message_id: str = "m1", **more: Any) -> Any:
    message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": "c", "messages": [message], **more}


def frames(app: App, path: str, body: Any = None, after: str = "") -> list[tuple[str, Any]]:
    """Ids and what they carry."""
    headers = {"Last-Event-ID": after} if after else {}
    how = {"json": body} if body is not None else {}
    with app.stream(path, "GET" if body is None else "POST", headers=headers, **how) as found:
        assert found.response.status_code == 200
        return [
            (frame.id, frame.data if frame.data == "[DONE]" else json.loads(frame.data)) for frame in found
        ]


def kinds(found: list[tuple[str, Any]]) -> list[str]:
    return [data if isinstance(data, str) else data["type"] for _, data in found]


def test_agui_has_the_turn_in_its_own_events(mine: App) -> None:
    path = f"/sessions/{mine.session()}/ag-ui"
    found = frames(mine, path, run(PROMPT))
    for _, data in found:
        TypeAdapter(Event).validate_python(data)
    assert kinds(found) == [
        "RUN_STARTED",
        *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"),
        *("REASONING_MESSAGE_END", "REASONING_END"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        *("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"),
        *("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"),
        "RUN_FINISHED",
    ]
    assert found[-1][1]["outcome"] == {"type": "success"}
    assert frames(mine, path, run(PROMPT)) == found  # sent again, it is the same turn
    for number, (cursor, _) in enumerate(found):
        assert frames(mine, path, run(PROMPT), cursor) == found[number + 1 :]


def test_vercel_has_the_turn_in_its_own_parts(mine: App) -> None:
    session_id = mine.session()
    path = f"/sessions/{session_id}/ui"
    found = frames(mine, path, chat(PROMPT))
    assert kinds(found) == [
        "start",
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta", "text-end"),
        *("tool-input-available", "tool-output-available"),
        *("text-start", "text-delta", "text-end"),
        *("finish", "[DONE]"),
    ]
    assert frames(mine, path, chat(PROMPT)) == found
    assert frames(mine, path, chat(PROMPT), found[4][0]) == found[5:]
    assert mine.http.get(f"/sessions/{session_id}").json()["turn_count"] == 1
    assert mine.http.get(f"{path}/c/stream").status_code == 204


def test_a_running_turn_is_resumed_by_another_reader(mine: App) -> None:
    session_id = mine.session()
    path = f"/sessions/{session_id}"
    sent = mine.http.post(f"{path}/turns", json={"prompt": "echo one\nsleep 60"})
    assert sent.status_code == 202
    until(lambda: mine.http.get(path).json()["running_turn"], "the turn")
    with mine.stream(f"{path}/ui/c/stream") as stream:
        assert stream.response.headers["x-vercel-ai-ui-message-stream"] == "v1"
        reading = iter(stream)
        seen = [json.loads(next(reading).data)["type"] for _ in range(3)]
        assert seen == ["start", "text-start", "text-delta"]
        mine.http.post(f"{path}/cancel", json={})
        rest = [frame.data for frame in reading]
    assert [json.loads(data)["type"] for data in rest[:-1]] == ["text-end", "abort"]


def test_a_failure_is_none_of_the_words_that_end_an_answer(mine: App) -> None:
    path = f"/sessions/{mine.session()}"
    failed = frames(mine, f"{path}/ag-ui", run("echo half\nerror broken"))
    assert kinds(failed)[-1] == "RUN_ERROR"
    assert "RUN_FINISHED" not in kinds(failed)
    assert kinds(frames(mine, f"{path}/ui", chat("error broken")))[-2:] == ["error", "[DONE]"]
    other = mine.http.post(f"{path}/ag-ui", json=run("echo another"))
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("ag-ui", run("")),
        ("ag-ui", run([{"type": "image", "source": {}}])),
        ("ag-ui", run("hi", tools=[{"name": "t"}])),
        ("ag-ui", run("hi", run_id="a b")),
        ("ag-ui", {**run("hi"), "messages": []}),
        ("ag-ui", {**run("hi"), "messages": [{"role": "assistant", "content": "x"}]}),
        ("ui", chat("hi", trigger="regenerate-message")),
        ("ui", {"messages": [{"id": "m", "role": "user", "parts": [{"type": "file", "url": "data:,"}]}]}),
        ("ui", {"messages": [{"id": "m", "role": "user", "parts": 3}]}),
    ],
)
def test_what_cannot_be_a_prompt_is_refused(mine: App, path: str, body: Any) -> None:
    session_id = mine.session()
    assert mine.http.post(f"/sessions/{session_id}/{path}", json=body).status_code == 422
    assert mine.http.get(f"/sessions/{session_id}").json()["turn_count"] == 0


def test_another_apps_session_is_an_unknown_one(face: Server, mine: App) -> None:
    theirs = face.app().session()
    for method, path, body in (
        ("POST", "ag-ui", run("x")),
        ("POST", "ui", chat("x")),
        ("GET", "ui/c/stream", None),
    ):
        replies = [
            mine.http.request(method, f"/sessions/{one}/{path}", json=body) for one in (theirs, "nobody")
        ]
        assert [reply.status_code for reply in replies] == [404, 404]
        assert replies[0].content == replies[1].content


def test_the_faces_are_closed_until_they_are_named(app: App) -> None:
    session_id = app.session()
    assert app.http.post(f"/sessions/{session_id}/ag-ui", json=run("x")).status_code == 404
    assert app.http.post(f"/sessions/{session_id}/ui", json=chat("x")).status_code == 404
