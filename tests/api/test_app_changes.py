"""`GET /events`: what changed in an app's list, under one cursor, as pages and as a stream."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from clawdforge import Forge
from tests.api.harness import App, Server, Stream, until

SSE = {"Accept": "text/event-stream"}


def page(app: App, after: int | None = None, **params: Any) -> tuple[list[dict[str, Any]], int]:
    asked = {**params} if after is None else {"after": after, **params}
    reply = app.http.get("/events", params=asked)
    assert reply.status_code == 200, reply.text
    return reply.json()["events"], reply.json()["next"]


def now(app: App) -> int:
    (first,), cursor = page(app)
    assert first == {"cursor": cursor, "type": "cursor"}
    return cursor


def test_a_session_is_told_once_as_it_is_now(app: App) -> None:
    start = now(app)
    assert start == 0
    session_id = app.session(title="one")
    app.turn(session_id, "echo hi")
    app.http.patch(f"/sessions/{session_id}", json={"pinned": True, "labels": ["x"]})
    (event,), cursor = page(app, start)
    assert event["type"] == "session"
    assert event["cursor"] == cursor
    assert event["session"] == app.http.get("/sessions").json()["sessions"][0]
    assert (event["session"]["pinned"], event["session"]["turn_count"]) == (True, 1)
    assert page(app, cursor) == ([], cursor)
    assert now(app) == cursor


def test_what_an_agent_says_changes_no_list(app: App) -> None:
    """A turn is told at its start and its end; however much it says, and asks by policy, is not."""
    session_id = app.session()
    app.turn(session_id, "echo first")
    before = now(app)
    app.turn(session_id, "echo two\nread a.txt\nflood 200 3\nthink aloud")
    assert now(app) - before <= 3
    assert app.http.get(f"/sessions/{session_id}").json()["head"] > 200


def test_sessions_of_others_are_not_told(app: App, other: App) -> None:
    mine, theirs = now(app), now(other)
    other.session()
    assert page(app, mine) == ([], mine)
    assert len(page(other, theirs)[0]) == 1


def test_a_page_has_its_limit_and_the_next_goes_on(app: App) -> None:
    made = [app.session(title=str(number)) for number in range(5)]
    first, cursor = page(app, 0, limit=2)
    second, last = page(app, cursor, limit=3)
    assert [event["session"]["session_id"] for event in first + second] == made
    assert page(app, last) == ([], last)


def test_a_deleted_session_is_told_also_when_nothing_of_it_is_left(server: Server, app: App) -> None:
    session_id = app.session()
    cursor = now(app)
    assert app.http.post(f"/sessions/{session_id}/purge").status_code == 200
    gone = [{"cursor": cursor + 2, "type": "session.deleted", "session_id": session_id}]
    until(lambda: page(app, cursor)[0] == gone, "the session's end")
    server.admin().post("/admin/sweep")
    assert page(app, cursor)[0] == gone


def test_a_permission_is_told_when_it_is_asked_and_when_it_is_decided(app: App) -> None:
    session_id = app.session(title="careful", permission_mode="ask")
    cursor = now(app)
    with app.stream("/events", params={"after": cursor}) as stream:
        app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "ask write notes.md"})
        asked = json.loads(stream.upto("permission")[-1].data)["permission"]
        assert (asked["session_id"], asked["title"], asked["agent"]) == (session_id, "careful", "claude")
        assert asked["state"] == "pending"
        assert asked["expires_at"] > asked["requested_at"]
        answer = {"decision": "allow_once"}
        app.http.post(f"/sessions/{session_id}/permissions/{asked['permission_id']}", json=answer)
        decided = json.loads(stream.upto("permission")[-1].data)["permission"]
        assert (decided["state"], decided["expires_at"]) == ("decided", None)
        last = {}
        for frame in stream:
            last = json.loads(frame.data)
            if last["type"] == "session" and last["session"]["running_turn"] is None:
                break
    assert last["session"]["turn_count"] == 1
    kinds = [event["type"] for event in page(app, cursor)[0]]
    assert sorted(kinds) == ["permission", "session"], "each once"


def test_a_stream_says_where_it_begins_and_can_be_resumed(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    with app.stream("/events") as stream:
        first = next(iter(stream))
        assert (first.event, json.loads(first.data)) == ("cursor", {"cursor": 0, "type": "cursor"})
        one = app.session()
        found = next(iter(stream))
        assert (found.event, json.loads(found.data)["session"]["session_id"]) == ("session", one)
    two = app.session()
    token = app.token
    server.stop()
    server.start()
    app = App(app.name, token, app.token_id, server.client(token))
    with app.stream("/events", params={"after": 0}, headers={"Last-Event-ID": found.id}) as stream:
        assert json.loads(next(iter(stream)).data)["session"]["session_id"] == two
        three = app.session()
        assert json.loads(next(iter(stream)).data)["session"]["session_id"] == three


def test_a_cursor_of_another_life_is_told_to_begin_again(app: App) -> None:
    """As after a backup was restored: the list may be anything."""
    app.session()
    cursor = now(app)
    assert page(app, cursor + 1) == ([{"cursor": cursor, "type": "reset"}], cursor)
    with app.stream("/events", params={"after": cursor + 1}) as stream:
        assert next(iter(stream)).event == "reset"
        app.session()
        assert next(iter(stream)).event == "session"


def test_a_stream_counts_as_a_reader_and_ends_with_its_token(server: Server) -> None:
    app = server.app()
    server.admin().post("/admin/apps", json={"app_name": app.name, "limits": {"max_readers": 1}})
    with app.http.stream("GET", "/events", headers=SSE) as response:
        stream = Stream(response)
        assert next(iter(stream)).event == "cursor"
        assert app.http.get("/events", headers=SSE).status_code == 429
        assert app.http.get("/events").status_code == 200
        server.admin().delete(f"/admin/tokens/{app.token_id}")
        assert list(stream) == []


@pytest.mark.parametrize("after", ["-1", "x", str(2**53 + 1)])
def test_a_cursor_is_a_number(app: App, after: str) -> None:
    assert app.http.get("/events", params={"after": after}).status_code == 422


def test_an_import_and_a_fork_appear_once_they_are_whole(app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo hi")
    cursor = now(app)
    messages = [{"role": "user", "content": f"m{n}"} for n in range(3000)]
    brought = app.http.post("/sessions/import", json={"messages": messages}).json()["session_id"]
    forked = app.http.post(f"/sessions/{session_id}/fork", json={}).json()["session_id"]
    events, _ = page(app, cursor)
    seen = [(event["type"], event.get("session", {}).get("session_id")) for event in events]
    assert ("session", brought) in seen
    assert ("session", forked) in seen
    assert all(kind == "session" for kind, _ in seen)


def test_the_sdk_pages_and_follows(server: Server, app: App) -> None:
    with Forge(server.url, app.token) as forge:
        assert forge.changes().events[0].type == "cursor"
        session = forge.create_session(title="seen")
        found = forge.changes(0)
        assert [change.session.title for change in found.events if change.session] == ["seen"]
        live = forge.follow_changes(0)
        assert next(live).type == "session"
        session.rename("changed")
        last = next(live)
        assert last.session is not None
        assert (last.session.title, last.cursor) == ("changed", forge.changes(found.next).next)
        session.close()
        ended = next(live)
        assert ended.session is not None
        assert ended.session.state == "ended"
