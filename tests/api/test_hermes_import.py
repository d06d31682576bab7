"""A session that hermes exported, with the tools its agent used: the same here, and after a round trip."""

from typing import Any

import pytest

from tests.api.harness import App

pytestmark = pytest.mark.on_both

CALL = "call_00_kq3fN1Xw"
TERMINAL = {
    "id": CALL,
    "call_id": CALL,
    "type": "function",
    "function": {"name": "terminal", "arguments": '{"command": "ls -1", "timeout": 30}'},
}
EXPORT: dict[str, Any] = {
    "session_id": "20260412_091502_a1b2c3",
    "title": "What is in here",
    "workspace": "/home/somebody/work",
    "model": "openai/gpt-5.4-mini",
    "created_at": 1775985302.1184,
    "updated_at": 1775985340.55,
    "pinned": False,
    "messages": [
        {"role": "user", "content": "what is in here?", "timestamp": 1775985303},
        {
            "role": "assistant",
            "content": "",
            "reasoning": "I should look.",
            "finish_reason": "tool_calls",
            "tool_calls": [TERMINAL],
            "timestamp": 1775985305,
        },
        {
            "role": "tool",
            "content": '{"output": "a.txt\\nb.txt", "exit_code": 0, "error": null}',
            "tool_call_id": CALL,
            "tool_name": "terminal",
            "timestamp": 1775985306,
        },
        {"role": "assistant", "content": "Two files.", "finish_reason": "stop", "timestamp": 1775985309},
    ],
    "tool_calls": [
        {
            "name": "terminal",
            "snippet": "a.txt\nb.txt",
            "tid": CALL,
            "assistant_msg_idx": 1,
            "args": {"command": "ls -1", "timeout": "30"},
        }
    ],
}


def brought(app: App, export: dict[str, Any]) -> dict[str, Any]:
    reply = app.http.post("/api/session/import", json=export)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["session"]
    return found


def words(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "seq"}


def test_tool_calls_keep_their_names_arguments_and_results(app: App) -> None:
    session = brought(app, EXPORT)
    _, asking, answered, _ = session["messages"]
    assert asking["tool_calls"][0]["id"] == CALL
    assert asking["tool_calls"][0]["function"]["name"] == "terminal"
    assert (answered["tool_call_id"], answered["name"]) == (CALL, "terminal")
    (shown,) = session["tool_calls"]
    assert (shown["name"], shown["tid"], shown["assistant_msg_idx"]) == ("terminal", CALL, 1)
    assert shown["args"] == {"command": "ls -1", "timeout": "30"}
    assert (shown["done"], shown["is_error"]) == (True, False)
    assert "a.txt" in shown["snippet"]
    page = app.http.get(f"/sessions/{session['session_id']}/messages").json()["messages"]
    assert [call["title"] for call in page[1]["tool_calls"]] == ["terminal"]
    assert page[1]["tool_calls"][0]["rawInput"] == {"command": "ls -1", "timeout": 30}


def test_an_export_brought_back_is_equal(app: App) -> None:
    first = brought(app, EXPORT)
    file = app.http.get("/api/session/export", params={"session_id": first["session_id"]}).json()
    second = brought(app, file)
    assert list(map(words, second["messages"])) == list(map(words, first["messages"]))
    assert second["tool_calls"] == first["tool_calls"]


def test_calls_that_only_stand_beside_the_messages(app: App) -> None:
    """Older sessions have no calls in their messages."""
    bare = [{key: row[key] for key in ("role", "content")} for row in EXPORT["messages"]]
    junk = ["x", {"assistant_msg_idx": 99, "name": "n"}, {"assistant_msg_idx": "1"}, {}]
    session = brought(app, {**EXPORT, "messages": bare, "tool_calls": [*EXPORT["tool_calls"], *junk]})
    (shown,) = session["tool_calls"]
    assert (shown["name"], shown["tid"], shown["snippet"]) == ("terminal", CALL, "a.txt\nb.txt")
    assert "tool_call_id" not in session["messages"][2]


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c", "name": "look", "args": {"at": 1}, "type": "tool_call"},
        {"id": "c", "name": "look", "input": {"at": 1}},
        {"toolCallId": "c", "title": "look", "rawInput": {"at": 1}},
        {"id": "c", "function": {"name": "look", "arguments": {"at": 1}}},
    ],
)
def test_calls_as_others_write_them(app: App, call: dict[str, Any]) -> None:
    rows = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "no such thing", "tool_call_id": "c", "is_error": True},
    ]
    session = brought(app, {"messages": rows})
    (shown,) = session["tool_calls"]
    assert (shown["name"], shown["tid"], shown["args"]) == ("look", "c", {"at": "1"})
    assert (shown["is_error"], shown["snippet"]) == (True, "no such thing")
    assert session["messages"][2]["name"] == "look"
