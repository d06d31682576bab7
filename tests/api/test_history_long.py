"""Long histories over HTTP: undo, redo, clear and fork of more than one transaction changes at once."""

import signal
from collections.abc import Callable
from typing import Any

from tests.api.harness import App, Server, until
from tests.api.talk import do, found, messages, state, texts

LENGTH = 601  # three slices; the last message is a prompt


def long_session(app: App) -> str:
    said = [
        {"role": "assistant" if number % 2 else "user", "content": f"needle {number}"}
        for number in range(LENGTH)
    ]
    reply = app.http.post("/sessions/import", json={"messages": said})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["session_id"])


def seen(app: App, sid: str) -> tuple[int, int, list[Any]]:
    return state(app, sid)["message_count"], len(texts(app, sid)), messages(app, sid, all=True)


def test_a_long_undo_and_redo_are_seen_whole(app: App) -> None:
    sid = long_session(app)
    before = seen(app, sid)
    for _ in range(2):
        undone = do(app, sid, "undo", turns=10_000)
        assert (undone["removed_count"], seen(app, sid)) == (LENGTH, (0, 0, []))
        assert found(app, "needle") == []
        restored = do(app, sid, "redo")
        assert (restored["restored_count"], seen(app, sid)) == (LENGTH, before)
    until(lambda: app.http.get("/search", params={"q": "needle 600"}).json()["hits"], "the index")


def test_a_long_history_is_cleared_and_forked_whole(app: App) -> None:
    sid = long_session(app)
    other = do(app, sid, "fork")["session_id"]
    assert texts(app, other) == texts(app, sid)
    assert do(app, sid, "clear")["archived_count"] == LENGTH
    assert (state(app, sid)["message_count"], texts(app, sid)) == (0, [])
    assert all(message["archived"] for message in messages(app, sid, all=True))
    assert state(app, other)["message_count"] == LENGTH


def test_what_a_kill_leaves_of_a_long_undo_is_finished(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    sid = long_session(app)
    do(app, sid, "undo", turns=200)
    left = seen(app, sid)
    server.stop(signal.SIGKILL)
    server.start()
    again = App(app.name, app.token, app.token_id, server.client(app.token))
    assert seen(again, sid) == left
    do(again, sid, "redo")
    assert len(texts(again, sid)) == LENGTH
