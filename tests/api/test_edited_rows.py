"""Rows that somebody edited by SQL are shown as they are, and all the others beside them."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.harness import App, Server, until
from tests.api.talk import say


def edit(server: Server, table: str, session_id: str, column: str, text: str) -> None:
    statement = f"UPDATE {table} SET {column} = ? WHERE session_id = ? RETURNING 1"  # noqa: S608 - names from this file
    assert server.sql(statement, text, session_id)


def read(app: App, path: str, **params: Any) -> dict[str, Any]:
    reply = app.http.get(path, params=params)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def restart(server: Server, app: App) -> App:
    server.start()
    return App(app.name, app.token, app.token_id, server.client(app.token))


EDITS = [
    ("sessions", "meta", "[1]", [1]),
    ("sessions", "meta", "not JSON", "not JSON"),
    ("sessions", "labels", "[1]", [1]),
    ("sessions", "labels", '{"a":1}', [{"a": 1}]),
    ("sessions", "permission_mode", "sometimes", "sometimes"),
    ("sessions", "on_interrupt", "panic", "panic"),
    ("sessions", "retention", "a while", "a while"),
    ("turns", "usage", '{"input_tokens":1.5}', 1.5),
    ("turns", "usage", "[1]", [1]),
    ("turns", "outcome", "so-so", "so-so"),
    ("turns", "state", "dreaming", "dreaming"),
    ("turns", "if_busy", "sing", None),
    ("messages", "tool_calls", "[1]", [1]),
    ("messages", "plan", "5", [5]),
]


def test_edited_rows_are_shown_as_they_are(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    usual = app.session(title="usual")
    say(app, usual, "echo hello")
    edited = [app.session() for _ in EDITS]
    for session_id in edited:
        say(app, session_id, "echo hello")
    server.stop()
    for session_id, (table, column, text, _) in zip(edited, EDITS, strict=True):
        edit(server, table, session_id, column, text)
    app = restart(server, app)
    listed = {row["session_id"]: row for row in read(app, "/sessions")["sessions"]}
    assert listed.keys() == {usual, *edited}
    for session_id, (table, column, _, shown) in zip(edited, EDITS, strict=True):
        session = read(app, f"/sessions/{session_id}")
        turn = read(app, f"/sessions/{session_id}/turns")["turns"][0]
        message = read(app, f"/sessions/{session_id}/messages")["messages"][-1]
        read(app, f"/sessions/{session_id}/export")
        read(app, f"/sessions/{session_id}/export", events=True)
        found = {"sessions": session, "turns": turn, "messages": message}[table].get(column)
        if shown == 1.5:
            found = found["input_tokens"]
        assert found == shown, (table, column)
        assert {**session, "ok": True} == {**listed[session_id], "ok": True}
    assert "Session" in server.log_text
    assert "has odd values in the database: meta" in server.log_text


@pytest.mark.parametrize(("column", "text"), [("meta", "[1]"), ("labels", "[1]"), ("retention", "a while")])
def test_an_edited_session_goes_on_and_can_be_put_right(
    start: Callable[..., Server], column: str, text: str
) -> None:
    server = start()
    app = server.app()
    session_id = app.session(meta={"a": 1})
    server.stop()
    edit(server, "sessions", session_id, column, text)
    app = restart(server, app)
    say(app, session_id, "echo hello")
    right: Any = {"meta": {"b": 2}, "labels": ["x"], "retention": "keep"}[column]
    reply = app.http.patch(f"/sessions/{session_id}", json={column: right})
    assert reply.status_code == 200, reply.text
    assert reply.json()[column] == right


def test_a_policy_that_is_not_known_leaves_a_turn_that_was_cut_off_alone(
    start: Callable[..., Server],
) -> None:
    server = start()
    app = server.app()
    session_id = app.session()
    assert app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "hang"}).status_code == 202
    until(lambda: read(app, f"/sessions/{session_id}")["running_turn"], "the turn's start")
    server.stop(signal.SIGKILL)
    edit(server, "sessions", session_id, "on_interrupt", "panic")
    app = restart(server, app)
    turns = read(app, f"/sessions/{session_id}/turns")["turns"]
    assert [(turn["turn_index"], turn["outcome"]) for turn in turns] == [(1, "interrupted")]
