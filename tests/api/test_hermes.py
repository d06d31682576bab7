"""The hermes dialect against a real server: sessions and their history, clause by clause."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.harness import App, Server, until

pytestmark = pytest.mark.on_both

MODEL = "openai/gpt-5.4-mini"
UNKNOWN = "nonexistent_zzz"
TWO_TURNS = [
    {"role": "user", "content": "first question"},
    {"role": "assistant", "content": "first reply"},
    {"role": "user", "content": "second question"},
    {"role": "tool", "content": '{"found": 3}'},
    {"role": "assistant", "content": "second reply"},
]


def call(app: App, path: str, **body: Any) -> httpx2.Response:
    return app.http.post(f"/api/session/{path}", json=body)


def read(app: App, path: str = "", **query: Any) -> httpx2.Response:
    return app.http.get(f"/api/session{path}", params=query)


def imported(app: App, messages: list[dict[str, str]], **body: Any) -> str:
    reply = call(app, "import", messages=messages, **{"title": "Imported", "model": MODEL, **body})
    assert (reply.status_code, reply.json()["ok"]) == (200, True), reply.text
    return str(reply.json()["session"]["session_id"])


def said(app: App, session_id: str) -> list[tuple[str, str]]:
    messages = read(app, session_id=session_id).json()["session"]["messages"]
    return [(message["role"], message["content"]) for message in messages]


def pairs(messages: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


def test_it_answers_as_hermes_does_when_asked_for_its_health(server: Server) -> None:
    """S2-01: its tests wait for this before anything else."""
    reply = server.client().get("/health")
    assert (reply.status_code, reply.json()["status"]) == (200, "ok")


def test_an_import_keeps_rows_in_order_and_is_a_new_session(app: App) -> None:
    """S2-10, S2-11, S2-12, S2-13, S2-20, X-11, X-17."""
    first = imported(app, TWO_TURNS)
    second = imported(app, TWO_TURNS, session_id=first, tool_calls=[], colour="red", pinned=True)
    assert first != second
    session = read(app, session_id=second).json()["session"]
    assert said(app, second) == pairs(TWO_TURNS)
    assert (session["title"], session["model"], session["pinned"]) == ("Imported", MODEL, True)
    assert session["message_count"] == 5
    assert app.http.get(f"/sessions/{first}").json()["retention"] == "keep"


def test_an_import_needs_a_list_of_rows(app: App) -> None:
    for body in ({}, {"messages": "x"}, {"messages": ["x"]}, {"messages": [{"role": "user"}, 5]}):
        reply = app.http.post("/api/session/import", json=body)
        assert reply.status_code == 400, body
        assert reply.json()["error"]
    assert call(app, "import", messages=[]).status_code == 200


def test_a_new_session_is_empty_and_has_a_workspace(server: Server, app: App, tmp_path: Path) -> None:
    """S2-21, X-18."""
    server.grant(app, tmp_path)
    reply = call(app, "new", workspace=str(tmp_path), model=MODEL).json()
    session = reply["session"]
    assert (session["workspace"], session["cwd"]) == (str(tmp_path), str(tmp_path))
    assert (session["messages"], session["title"], session["model"]) == ([], "Untitled", MODEL)
    own = call(app, "new").json()["session"]
    assert Path(own["workspace"]).is_absolute()
    assert call(app, "new", workspace=str(tmp_path / "no")).status_code == 400


@pytest.mark.parametrize("path", ["", "/status", "/usage", "/export"])
def test_reading_needs_an_id_and_knows_only_its_own(app: App, other: App, path: str) -> None:
    """S2-03, S2-22, S2-52, S2-53, S2-62, X-03."""
    foreign = imported(other, TWO_TURNS)
    unknown = read(app, path, session_id=UNKNOWN)
    assert unknown.status_code == 404
    assert "not found" in unknown.json()["error"].lower()
    assert read(app, path, session_id=foreign).content == unknown.content
    for reply in (read(app, path), read(app, path, session_id="")):
        assert reply.status_code == 400
        assert "session_id" in reply.json()["error"]


@pytest.mark.parametrize(
    "path",
    ["retry", "undo", "clear", "rename", "pin", "archive", "branch", "duplicate", "truncate", "update"],
)
def test_changing_needs_an_id_and_knows_only_its_own(app: App, other: App, path: str) -> None:
    """S2-34, S2-35, S2-43."""
    foreign, more = imported(other, TWO_TURNS), {"title": "x", "keep_count": 0}
    unknown = call(app, path, session_id=UNKNOWN, **more)
    assert unknown.status_code == 404
    assert "not found" in unknown.json()["error"].lower()
    assert call(app, path, session_id=foreign, **more).content == unknown.content
    missing = call(app, path, **more)
    assert (missing.status_code, "session_id" in missing.json()["error"]) == (400, True)
    assert said(other, foreign) == pairs(TWO_TURNS)


def test_retry_hands_back_the_last_text_and_cuts_before_it(app: App) -> None:
    """S2-30, S2-31, S2-32, S2-39."""
    session_id = imported(app, TWO_TURNS)
    reply = call(app, "retry", session_id=session_id)
    assert reply.status_code == 200
    assert reply.json() == {"ok": True, "last_user_text": "second question", "removed_count": 3}
    assert said(app, session_id) == pairs(TWO_TURNS[:2])
    assert app.http.get(f"/sessions/{session_id}/turns").json()["count"] == 0


def test_retry_without_a_message_of_the_user_changes_nothing(app: App) -> None:
    """S2-33."""
    rows = [{"role": "assistant", "content": "hello, I speak first"}]
    session_id = imported(app, rows)
    reply = call(app, "retry", session_id=session_id)
    assert 400 <= reply.status_code < 500
    assert "no previous message to retry" in reply.json()["error"].lower()
    assert said(app, session_id) == pairs(rows)


def test_what_is_sent_again_after_a_retry_stands_there_once(app: App) -> None:
    """S2-36."""
    rows = [*TWO_TURNS[:2], {"role": "user", "content": "echo again"}, {"role": "assistant", "content": "b"}]
    session_id = imported(app, rows)
    reply = call(app, "retry", session_id=session_id).json()
    assert reply["removed_count"] == 2
    assert said(app, session_id) == pairs(rows[:2])
    app.turn(session_id, reply["last_user_text"])
    assert said(app, session_id)[2:] == [("user", "echo again"), ("assistant", "again")]


def test_concurrent_retries_cut_each_message_once(app: App) -> None:
    """S2-37, S2-38: each succeeds with a text of its own, or finds nothing left."""
    for _ in range(5):
        session_id = imported(app, TWO_TURNS)
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(lambda _: call(app, "retry", session_id=session_id), range(4)))  # noqa: B023
        done = [reply.json() for reply in replies if reply.status_code == 200]
        refused = [reply.json()["error"] for reply in replies if reply.status_code != 200]
        assert sorted(reply["last_user_text"] for reply in done) == ["first question", "second question"]
        assert sum(reply["removed_count"] for reply in done) == 5
        assert refused == ["no previous message to retry"] * 2
        assert said(app, session_id) == []


def test_undo_takes_the_last_exchange_back(app: App) -> None:
    """S2-40, S2-41."""
    session_id = imported(app, TWO_TURNS)
    reply = call(app, "undo", session_id=session_id).json()
    assert (reply["ok"], reply["removed_count"]) == (True, 3)
    assert "second question" in reply["removed_preview"]
    assert said(app, session_id) == pairs(TWO_TURNS[:2])


def test_undo_until_nothing_is_left(app: App) -> None:
    """S2-42."""
    session_id = imported(app, TWO_TURNS)
    assert [call(app, "undo", session_id=session_id).status_code for _ in range(2)] == [200, 200]
    reply = call(app, "undo", session_id=session_id)
    assert (reply.status_code, "nothing to undo" in reply.json()["error"].lower()) == (409, True)
    assert said(app, session_id) == []


def test_status_is_flat_and_says_whether_a_turn_runs(app: App) -> None:
    """S2-50, S2-51, X-04: of any session, wherever it was made."""
    session_id = imported(app, TWO_TURNS)
    found = read(app, "/status", session_id=session_id).json()
    expected = {"session_id": session_id, "title": "Imported", "model": MODEL, "message_count": 5}
    assert expected.items() <= found.items()
    assert found["agent_running"] is False
    assert {"workspace", "created_at", "updated_at"} <= found.keys()
    assert isinstance(found["updated_at"], float)
    made = app.session()
    app.http.post(f"/sessions/{made}/turns", json={"prompt": "sleep 60"})
    until(lambda: read(app, "/status", session_id=made).json()["agent_running"] is True, "the turn")
    app.http.post(f"/sessions/{made}/cancel", json={})
    assert read(app, "/status", session_id=made).json()["agent_running"] is False


def test_usage_is_nothing_at_first_and_then_what_the_agent_reports(app: App) -> None:
    """S2-60, S2-61, X-15."""
    session_id = call(app, "new").json()["session"]["session_id"]
    names = ("input_tokens", "output_tokens", "total_tokens")
    found = read(app, "/usage", session_id=session_id).json()
    assert [found[name] for name in names] == [0, 0, 0]
    app.turn(session_id, "usage 100 20")
    app.turn(session_id, "usage 7 3")
    found = read(app, "/usage", session_id=session_id).json()
    assert [found[name] for name in names] == [107, 23, 130]


def test_updated_at_moves_with_activity_only(app: App) -> None:
    """S3-16, X-07: within the second."""
    session_id = imported(app, TWO_TURNS)
    first = read(app, "/status", session_id=session_id).json()["updated_at"]
    assert read(app, "/status", session_id=session_id).json()["updated_at"] == first
    app.turn(session_id, "echo x")
    assert read(app, "/status", session_id=session_id).json()["updated_at"] > first


def test_titles_pins_and_archives(app: App) -> None:
    session_id = imported(app, TWO_TURNS)
    app.http.patch(f"/sessions/{session_id}", json={"labels": ["mine"]})
    assert call(app, "rename", session_id=session_id, title="x" * 99).json()["session"]["title"] == "x" * 80
    assert call(app, "rename", session_id=session_id, title="  ").json()["session"]["title"] == "Untitled"
    assert call(app, "pin", session_id=session_id).json()["session"]["pinned"] is True
    assert call(app, "pin", session_id=session_id, pinned=False).json()["session"]["pinned"] is False
    assert call(app, "archive", session_id=session_id).json()["session"]["archived"] is True
    assert app.http.get(f"/sessions/{session_id}").json()["labels"] == ["mine", "archived"]
    reply = call(app, "archive", session_id=session_id, archived=False).json()
    assert reply["session"]["archived"] is False
    assert app.http.get(f"/sessions/{session_id}").json()["labels"] == ["mine"]


def test_another_model_is_stored_but_a_session_stays_where_it_is(app: App, tmp_path: Path) -> None:
    """X-17."""
    session_id = imported(app, TWO_TURNS)
    assert call(app, "update", session_id=session_id, model="m2").json()["session"]["model"] == "m2"
    moved = call(app, "update", session_id=session_id, workspace=str(tmp_path))
    assert (moved.status_code, moved.json()["code"]) == (501, "unsupported")


def test_deleting_is_for_good_and_may_be_repeated(app: App, other: App) -> None:
    session_id = imported(app, TWO_TURNS)
    unknown = call(other, "delete", session_id=UNKNOWN)
    foreign = call(other, "delete", session_id=session_id)
    assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
    assert len(said(app, session_id)) == 5
    for _ in range(2):
        assert call(app, "delete", session_id=session_id).json() == {"ok": True}
    assert read(app, session_id=session_id).status_code == 404
    assert app.http.get(f"/sessions/{session_id}").status_code == 404


def test_a_session_that_is_deleted_while_it_answers_stays_deleted(app: App) -> None:
    session_id = call(app, "new").json()["session"]["session_id"]
    app.http.post("/api/chat/start", json={"session_id": session_id, "message": "chunks 1000 10 5"})
    assert call(app, "delete", session_id=session_id).status_code == 200
    assert read(app, session_id=session_id).status_code == 404
    found = app.http.get("/api/sessions/search").json()["sessions"]
    assert session_id not in {row["session_id"] for row in found}


def test_clear_puts_away_what_was_said(app: App) -> None:
    session_id = imported(app, TWO_TURNS)
    reply = call(app, "clear", session_id=session_id).json()
    assert (reply["session"]["message_count"], reply["session"]["title"]) == (0, "Untitled")
    assert said(app, session_id) == []
    shown = app.http.get(f"/api/sessions/{session_id}", params={"all": "true"}).json()["messages"]
    assert [message["archived"] for message in shown] == [True] * 5


def test_truncate_keeps_the_first_messages(app: App) -> None:
    session_id = imported(app, TWO_TURNS)
    assert call(app, "truncate", session_id=session_id, keep_count=-1).status_code == 400
    assert len(call(app, "truncate", session_id=session_id, keep_count=9).json()["session"]["messages"]) == 5
    kept = call(app, "truncate", session_id=session_id, keep_count=3).json()["session"]["messages"]
    assert pairs(kept) == pairs(TWO_TURNS[:2])
    assert call(app, "truncate", session_id=session_id, keep_count=0).json()["session"]["messages"] == []


def test_a_branch_has_the_same_past_and_both_live_on(app: App) -> None:
    session_id = call(app, "new").json()["session"]["session_id"]
    for word in ("one", "two"):
        app.turn(session_id, f"echo {word}")
    call(app, "rename", session_id=session_id, title="stem")
    early = call(app, "branch", session_id=session_id, keep_count=2, title="early").json()
    assert early["ok"], early
    whole = call(app, "branch", session_id=session_id).json()
    assert (early["title"], whole["title"]) == ("early", "stem (fork)")
    assert early["parent_session_id"] == session_id
    assert [text for _, text in said(app, early["session_id"])] == ["echo one", "one"]
    assert said(app, whole["session_id"]) == said(app, session_id)
    app.turn(early["session_id"], "echo apart")
    assert len(said(app, session_id)) == 4
    inside = call(app, "branch", session_id=session_id, keep_count=1)
    assert (inside.status_code, inside.json()["code"]) == (501, "unsupported")
    copy = call(app, "duplicate", session_id=session_id).json()["session"]
    assert (copy["title"], len(copy["messages"])) == ("stem (copy)", 4)


def test_an_export_can_be_imported(app: App) -> None:
    session_id = imported(app, TWO_TURNS)
    reply = read(app, "/export", session_id=session_id)
    assert f'filename="hermes-{session_id}.json"' in reply.headers["content-disposition"]
    again = call(app, "import", **json.loads(reply.content)).json()["session"]
    assert again["session_id"] != session_id
    assert pairs(again["messages"]) == pairs(TWO_TURNS)


def test_search_finds_titles_and_words(app: App, other: App) -> None:
    by_title = imported(app, [], title="About tamarind")
    by_words = imported(app, [{"role": "user", "content": "where does tamarind grow"}], title="Trees")
    imported(other, [{"role": "user", "content": "tamarind"}], title="tamarind")
    found = app.http.get("/api/sessions/search", params={"q": "tamarind"}).json()
    assert found["count"] == 2
    kinds = {row["session_id"]: row["match_type"] for row in found["sessions"]}
    assert kinds == {by_title: "title", by_words: "content"}
    everything = app.http.get("/api/sessions/search").json()["sessions"]
    assert {row["session_id"] for row in everything} == {by_title, by_words}


def test_a_window_of_a_long_transcript(app: App) -> None:
    session_id = imported(app, TWO_TURNS)
    window = read(app, session_id=session_id, msg_limit=2).json()["session"]
    assert pairs(window["messages"]) == pairs(TWO_TURNS[3:])
    assert (window["_messages_truncated"], window["_messages_offset"]) == (True, 3)
    assert read(app, session_id=session_id, messages=0).json()["session"]["messages"] == []


def test_the_whole_dialect_is_under_a_prefix_too_with_its_list(start: Callable[..., Server]) -> None:
    """`/api/sessions` belongs to deepagent, so the list of hermes needs a place of its own."""
    server = start("--trust-loopback", HERMES_PREFIX="/hermes")
    client = server.client()
    made = client.post("/hermes/api/session/new", json={}).json()["session"]["session_id"]
    listed = client.get("/hermes/api/sessions").json()
    assert [row["session_id"] for row in listed["sessions"]] == [made]
    assert isinstance(client.get("/api/sessions").json(), list)
    assert client.get("/api/session", params={"session_id": made}).status_code == 200
    assert client.get("/hermes/health").json()["status"] == "ok"
    assert client.get("/hermes/api/session", params={"session_id": UNKNOWN}).status_code == 404


def test_import_and_new_do_not_count_for_the_cap(start: Callable[..., Server]) -> None:
    """X-09, X-10."""
    app = start(MAX_LIVE_SESSIONS="1").app()
    app.session()
    assert app.http.post("/sessions", json={}).status_code == 503
    assert call(app, "new").status_code == 200
    imported(app, TWO_TURNS)
