"""The deepagent dialect against a real server: what its callers rely on, clause by clause."""

import hashlib
import itertools
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.harness import App, Server, until

pytestmark = pytest.mark.on_both

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def create(app: App, **body: Any) -> str:
    reply = app.http.post("/api/sessions", json=body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["session_id"])


def post(app: App, session_id: str, content: str, **body: Any) -> httpx2.Response:
    return app.http.post(f"/api/sessions/{session_id}/messages", json={"content": content, **body})


def detail(app: App, session_id: str, **query: Any) -> Any:
    reply = app.http.get(f"/api/sessions/{session_id}", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_posted_message_is_stored_and_runs_nothing(server: Server, app: App, tmp_path: Path) -> None:
    """S4-14, S4-20, S4-21, S4-22, S4-23, S4-41, X-14."""
    server.grant(app, tmp_path)
    session_id = create(app, persona_name="default-interactive", repo_path=str(tmp_path))
    before = detail(app, session_id)["session"]
    assert (before["state"], before["title"], before["total_input_tokens"]) == ("active", "", 0)
    assert before["last_message_at"] is None
    reply = post(app, session_id, "echo please remember the word tamarind")
    assert (reply.status_code, reply.json()["ok"], reply.json()["seq"]) == (200, True, 1)
    found = detail(app, session_id)
    assert [(m["role"], m["content"], m["archived"]) for m in found["messages"]] == [
        ("user", "echo please remember the word tamarind", False)
    ]
    session = found["session"]
    assert "tamarind" in session["title"]
    assert session["total_input_tokens"] > 0
    assert session["last_message_at"] is not None
    turns = app.http.get(f"/sessions/{session_id}/turns").json()
    assert turns["count"] == 0


def test_the_title_is_the_first_fifty_characters_of_the_first_message_only(app: App) -> None:
    """S4-14, X-16."""
    session_id = create(app)
    post(app, session_id, "x" * 80)
    post(app, session_id, "another")
    assert detail(app, session_id)["session"]["title"] == "x" * 50
    named = create(app, title="mine")
    post(app, named, "another")
    assert detail(app, named)["session"]["title"] == "mine"


def test_token_totals_add_up(app: App) -> None:
    """S4-12, S4-23, X-15: estimates, of the turn's answer too; what the agent reports is elsewhere."""
    session_id = create(app)
    post(app, session_id, "abcd" * 10)
    assert detail(app, session_id)["session"]["total_input_tokens"] == 10
    post(app, session_id, "abcd" * 5)
    assert detail(app, session_id)["session"]["total_input_tokens"] == 15
    assert app.http.get(f"/sessions/{session_id}/usage").json()["input_tokens"] == 0
    app.turn(session_id, "echo " + "word" * 10)
    session = detail(app, session_id)["session"]
    assert session["total_output_tokens"] == 10
    assert session["total_input_tokens"] > 25


def test_a_posted_message_is_never_put_before_a_later_prompt(app: App) -> None:
    """X-14: the agent hears of its own prompts only, in a new context as well."""
    session_id = create(app, persona_name="default-interactive")
    app.turn(session_id, "echo one")
    post(app, session_id, "a private note")
    told = app.turn(session_id, "recall all").json()
    assert "private note" not in str(told["events"])
    app.http.patch(f"/sessions/{session_id}", json={"model": "other"})
    app.turn(session_id, "echo two")
    told = app.turn(session_id, "recall all").json()
    assert "echo one" in str(told["events"])
    assert "private note" not in str(told["events"])


def test_run_true_runs_a_turn_and_its_answer_becomes_a_message(app: App) -> None:
    """X-14; turn results appear as messages."""
    session_id = create(app)
    ack = post(app, session_id, "echo hi there", run=True).json()
    assert (ack["turn_index"], ack["seq"], ack["state"]) == (1, None, "active")

    def answered() -> Any:
        found = detail(app, session_id)["messages"]
        return found if len(found) == 2 else None

    messages = until(answered, "the answer")
    assert [(m["role"], m["content"], m["turn"]) for m in messages] == [
        ("user", "echo hi there", 1),
        ("assistant", "hi there", 1),
    ]


def test_run_true_with_a_key_runs_once(app: App) -> None:
    session_id = create(app)
    path, headers = f"/api/sessions/{session_id}/messages", {"Idempotency-Key": "k1"}
    body = {"content": "echo once", "run": True}
    replies = [app.http.post(path, json=body, headers=headers).json() for _ in range(3)]
    assert {reply["turn_index"] for reply in replies} == {1}


def test_a_running_prompt_is_a_pending_message_and_posting_does_not_disturb_it(app: App) -> None:
    """X-13."""
    session_id = create(app)
    post(app, session_id, "sleep 30", run=True)
    until(lambda: detail(app, session_id)["messages"], "the prompt's message")
    assert [m["pending"] for m in detail(app, session_id)["messages"]] == [True]
    post(app, session_id, "by the way")
    app.http.post(f"/sessions/{session_id}/cancel", json={})
    until(lambda: not any(m["pending"] for m in detail(app, session_id)["messages"]), "the settling")
    assert [m["content"] for m in detail(app, session_id)["messages"]] == ["sleep 30", "by the way"]


def test_unknown_fields_are_refused(app: App) -> None:
    """S4-24, X-11."""
    for path, body in (
        ("/api/sessions", {"persona_name": "default-interactive", "colour": "red"}),
        (f"/api/sessions/{create(app)}/messages", {"content": "x", "role": "system"}),
    ):
        reply = app.http.post(path, json=body)
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
        assert isinstance(reply.json()["detail"], str)


def test_a_message_needs_content(app: App) -> None:
    session_id = create(app)
    path = f"/api/sessions/{session_id}/messages"
    for body in ({}, {"content": ""}, {"content": None}, {"content": 5}):
        assert app.http.post(path, json=body).status_code == 422


def test_the_list_is_an_array_of_rows_last_activity_first(app: App) -> None:
    """S4-30, S4-31, S4-32, X-05, X-07: by the stored time, not by the whole seconds that are shown."""
    made = [create(app, title=str(n)) for n in range(3)]
    rows = app.http.get("/api/sessions", params={"limit": 10}).json()
    assert isinstance(rows, list)
    assert [row["id"] for row in rows] == made[::-1]
    assert all(row["id"] == row["session_id"] for row in rows)
    post(app, made[0], "now I am the newest")
    rows = app.http.get("/api/sessions").json()
    assert [row["id"] for row in rows] == [made[0], made[2], made[1]]
    assert len(app.http.get("/api/sessions", params={"limit": 2}).json()) == 2
    app.http.post(f"/api/sessions/{made[1]}/end")
    ended = app.http.get("/api/sessions", params={"state": "ended"}).json()
    assert [row["id"] for row in ended] == [made[1]]
    active = app.http.get("/api/sessions", params={"state": "active"}).json()
    assert {row["id"] for row in active} == {made[0], made[2]}
    for query in ({"limit": 0}, {"limit": "x"}, {"state": "asleep"}):
        assert app.http.get("/api/sessions", params=query).status_code == 422


def test_an_id_is_found_whole_and_an_unknown_one_is_404(app: App) -> None:
    """S4-40, X-19."""
    session_id = create(app)
    assert detail(app, session_id)["session"]["id"] == session_id
    for unknown in ("nonexistent_zzz", session_id[:8], "5b0f2a0e-0000-4000-8000-000000000000"):
        reply = app.http.get(f"/api/sessions/{unknown}")
        assert (reply.status_code, reply.json()["detail"]) == (404, "session not found")


def test_archived_messages_are_shown_when_asked_for(app: App, server: Server) -> None:
    """S4-10, S4-42: a row archived by plain SQL counts as well."""
    session_id = create(app)
    post(app, session_id, "to be archived")
    server.sql("UPDATE messages SET archived = 1 WHERE session_id = ?", session_id)
    assert detail(app, session_id)["messages"] == []
    assert [m["archived"] for m in detail(app, session_id, all="true")["messages"]] == [True]


def test_the_detail_holds_the_last_two_hundred(app: App) -> None:
    """S4-43."""
    session_id = create(app)
    for n in range(203):
        post(app, session_id, f"note {n}")
    found = detail(app, session_id)["messages"]
    assert [m["content"] for m in found] == [f"note {n}" for n in range(3, 203)]
    assert [m["seq"] for m in found] == list(range(4, 204))


def test_an_ended_session_takes_no_messages_but_can_be_read(app: App) -> None:
    """S4-50, S4-51, S4-52, S4-53, X-06."""
    session_id = create(app)
    post(app, session_id, "hello")
    first = app.http.post(f"/api/sessions/{session_id}/end")
    assert (first.status_code, first.json()["state"]) == (200, "ended")
    second = app.http.post(f"/api/sessions/{session_id}/end")
    assert (second.status_code, second.json()["state"]) == (200, "ended")
    for run in (False, True):
        refused = post(app, session_id, "more", run=run)
        assert refused.status_code == 409
        assert "ended" in refused.json()["detail"]
    found = detail(app, session_id)
    assert (found["session"]["state"], len(found["messages"])) == ("ended", 1)
    assert found["session"]["ended_at"] is not None
    assert session_id in {row["id"] for row in app.http.get("/api/sessions").json()}
    assert app.turn(session_id, "echo no").status_code == 410  # the same fact by the forge path


def test_times_are_iso_text_with_whole_seconds(app: App) -> None:
    """S4-16, X-07."""
    session_id = create(app)
    post(app, session_id, "hello")
    app.http.post(f"/api/sessions/{session_id}/end")
    found = detail(app, session_id)
    times = [found["session"][name] for name in ("created_at", "updated_at", "last_message_at", "ended_at")]
    assert all(ISO.fullmatch(time) for time in [*times, found["messages"][0]["ts"]])


def test_a_session_works_in_the_callers_folder(server: Server, app: App, tmp_path: Path) -> None:
    """S4-13, X-18."""
    server.grant(app, tmp_path)
    repo = tmp_path / "repo"
    repo.mkdir()
    link = tmp_path / "link"
    link.symlink_to(repo)
    session = detail(app, create(app, repo_path=str(link)))["session"]
    key = hashlib.sha256(str(repo.resolve()).encode()).hexdigest()[:16]
    assert session["project_key"] == key
    assert {session[name] for name in ("repo_path", "cwd", "workspace")} == {str(repo.resolve())}
    assert detail(app, create(app, repo_path=str(repo), project_key="p"))["session"]["project_key"] == "p"
    missing = app.http.post("/api/sessions", json={"repo_path": str(tmp_path / "nowhere")})
    assert (missing.status_code, missing.json()["code"]) == (400, "workspace_refused")
    assert "does not exist" in missing.json()["detail"]


def test_personas_name_agent_model_and_plan_mode(app: App) -> None:
    """X-17."""
    made = app.http.put(
        "/personas/careful",
        json={"agent": "claude", "model": "m1", "plan_mode": True, "instructions": "be kind"},
    )
    assert made.status_code == 200, made.text
    session = detail(app, create(app, persona_name="careful"))["session"]
    assert (session["persona_name"], session["agent"], session["model"]) == ("careful", "claude", "m1")
    assert session["plan_mode"] is True
    other = detail(app, create(app, persona_name="careful", model_override="m2", plan_mode=False))["session"]
    assert (other["model"], other["plan_mode"]) == ("m2", False)
    unknown = app.http.post("/api/sessions", json={"persona_name": "nobody"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "persona_not_found")


def test_a_personas_instructions_reach_the_agent(app: App) -> None:
    app.http.put("/personas/kind", json={"agent": "claude", "instructions": "be very kind"})
    session_id = create(app, persona_name="kind")
    app.turn(session_id, "echo hello")
    assert "be very kind" in str(app.turn(session_id, "recall all").json()["events"])


def test_sub_sessions_are_seen_in_the_parent_and_end_with_it(app: App, other: App) -> None:
    """S4-12: at most three deep."""
    line = [create(app)]
    for _ in range(3):
        line.append(create(app, parent_session_id=line[-1]))
    deep = app.http.post("/api/sessions", json={"parent_session_id": line[-1]})
    assert (deep.status_code, "3 deep" in deep.json()["detail"]) == (422, True)
    found = detail(app, line[0])
    assert [(child["id"], child["depth"]) for child in found["sub_sessions"]] == [(line[1], 1)]
    assert detail(app, line[3])["session"]["depth"] == 3
    foreign = other.http.post("/api/sessions", json={"parent_session_id": line[0]})
    assert foreign.status_code == 404
    app.http.post(f"/api/sessions/{line[0]}/end")
    assert {detail(app, one)["session"]["state"] for one in line} == {"ended"}


def test_the_cap_does_not_concern_kept_sessions(start: Callable[..., Server]) -> None:
    """X-09, X-10."""
    app = start(MAX_LIVE_SESSIONS="1").app()
    app.session()
    assert app.http.post("/sessions", json={"agent": "claude"}).status_code == 503
    for _ in range(3):
        create(app)
    assert app.http.get("/sessions").json()["sessions"][0]["retention"] == "keep"


def test_many_messages_at_once_get_seqs_without_gaps(app: App) -> None:
    session_id = create(app)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: post(app, session_id, f"note {n}").json()["seq"], range(40)))
    assert sorted(replies) == list(range(1, 41))
    by_seq = {m["seq"]: m["content"] for m in detail(app, session_id)["messages"]}
    assert [by_seq[seq] for seq in replies] == [f"note {n}" for n in range(40)]


@pytest.mark.parametrize("path", ["", "/stream"])
def test_another_apps_session_is_unknown(app: App, other: App, path: str) -> None:
    session_id = create(app)
    assert other.http.get(f"/api/sessions/{session_id}{path}").status_code == 404
    assert session_id not in other.http.get("/api/sessions").text


def contents(app: App, session_id: str, count: int, **options: Any) -> list[str]:
    """So many messages of the stream."""
    with app.stream(f"/api/sessions/{session_id}/stream", **options) as stream:
        assert stream.response.status_code == 200, stream.response.read()
        found = list(itertools.islice(stream, count))
    assert all(frame.event == "message" for frame in found)
    assert [frame.id for frame in found] == [str(json.loads(frame.data)["seq"]) for frame in found]
    return [json.loads(frame.data)["content"] for frame in found]


def test_the_stream_resumes_after_a_seq_and_the_header_wins(app: App) -> None:
    """S4-60, S4-61, S4-62, S4-63."""
    session_id = create(app)
    for word in ("one", "two", "three"):
        post(app, session_id, word)
    assert contents(app, session_id, 3) == ["one", "two", "three"]
    assert contents(app, session_id, 2, params={"last_seq": 1}) == ["two", "three"]
    header = {"Last-Event-ID": "2"}
    assert contents(app, session_id, 1, headers=header) == ["three"]
    assert contents(app, session_id, 1, params={"last_seq": 0}, headers=header) == ["three"]
    path = f"/api/sessions/{session_id}/stream"
    for query in ({"last_seq": 4}, {"last_seq": -1}, {"last_seq": "x"}):
        assert app.http.get(path, params=query).status_code == 422


def test_a_message_is_streamed_as_soon_as_it_is_stored(app: App) -> None:
    session_id = create(app)
    with app.stream(f"/api/sessions/{session_id}/stream") as stream:
        frames = iter(stream)
        for word in ("one", "two"):
            post(app, session_id, word)
            assert json.loads(next(frames).data)["content"] == word
        app.turn(session_id, "chunks 50")
        asked, answered = json.loads(next(frames).data), json.loads(next(frames).data)
        assert (asked["role"], asked["pending"]) == ("user", True)
        assert (answered["role"], len(answered["content"].split())) == ("assistant", 50)


def test_what_was_cut_is_not_streamed_and_its_seq_is_not_used_again(app: App) -> None:
    """X-12."""
    session_id = create(app)
    for word in ("one", "two"):
        app.turn(session_id, f"echo {word}")
    app.http.post(f"/sessions/{session_id}/undo", json={})
    app.turn(session_id, "echo three")
    assert contents(app, session_id, 4) == ["echo one", "one", "echo three", "three"]
    assert [m["seq"] for m in detail(app, session_id, all="true")["messages"]] == [1, 2, 5, 6]
    assert contents(app, session_id, 2, headers={"Last-Event-ID": "4"}) == ["echo three", "three"]


def test_the_stream_ends_with_its_session(app: App) -> None:
    session_id = create(app)
    with app.stream(f"/api/sessions/{session_id}/stream") as stream:
        app.http.post("/api/session/delete", json={"session_id": session_id})
        assert list(stream) == []
