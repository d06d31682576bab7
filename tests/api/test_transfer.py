"""Export, import and search over HTTP: what goes out comes back equal, and only what is visible is found."""

import json
from typing import Any

import pytest

from clawdforge.wire.session import Export
from tests.api.harness import App
from tests.api.talk import do, found, how, knows, messages, post, say, state, texts

TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "question A"},
    {"role": "assistant", "content": "reply A"},
    {"role": "user", "content": "question B"},
    {"role": "assistant", "content": "let me look", "tool_calls": [{"id": "t1", "function": {"name": "ls"}}]},
    {"role": "tool", "content": "a.txt", "tool_call_id": "t1"},
]
ASKED = json.dumps({"type": "user", "message": {"role": "user", "content": "why?"}})
SAID = json.dumps(
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "why?"}]},
    }
)
OWN = ("session_id", "created_at", "updated_at", "cwd", "retention", "forked_from")


def take_in(app: App, **body: Any) -> dict[str, Any]:
    reply = app.http.post("/sessions/import", json=body)
    assert reply.status_code == 200, reply.text
    made: dict[str, Any] = reply.json()
    return made


def exported(app: App, sid: str, **params: Any) -> dict[str, Any]:
    reply = app.http.get(f"/sessions/{sid}/export", params=params)
    assert reply.status_code == 200, reply.text
    whole: dict[str, Any] = reply.json()
    Export.model_validate(whole)
    return whole


def test_a_transcript_is_kept_in_order_and_undone_as_a_whole(app: App) -> None:
    """S2-10 to S2-13, S2-31, S2-40."""
    made = take_in(app, messages=TALK, title="Imported", model="openai/gpt-5.4-mini", session_id="mine")
    sid = made["session_id"]
    assert sid != "mine"
    assert (made["title"], made["model"], made["retention"]) == ("Imported", "openai/gpt-5.4-mini", "keep")
    assert [(m["role"], m["content"]) for m in messages(app, sid)] == [
        (r["role"], r["content"]) for r in TALK
    ]
    events = app.http.get(f"/sessions/{sid}/events").json()["events"]
    assert [(event["type"], event["imported"]) for event in events] == [("session.created", 5)]
    cut = do(app, sid, "undo")
    assert (cut["removed_count"], cut["removed_preview"]) == (3, "question B")
    assert texts(app, sid) == ["question A", "reply A"]
    assert do(app, sid, "retry")["removed_count"] == 2
    assert post(app, sid, "undo").json()["code"] == "nothing_to_undo"
    do(app, sid, "redo")
    do(app, sid, "redo")
    assert len(texts(app, sid)) == 5


def test_a_long_transcript_is_taken_in_parts_and_whole(app: App) -> None:
    rows = [{"role": ("user", "assistant")[n % 2], "content": f"line {n}"} for n in range(901)]
    made = take_in(app, messages=rows, retention="ttl")
    sid = made["session_id"]
    assert (made["state"], made["retention"], made["message_count"]) == ("active", "ttl", 901)
    assert texts(app, sid) == [row["content"] for row in rows]
    events = app.http.get(f"/sessions/{sid}/events").json()["events"]
    assert [(event["type"], event["imported"]) for event in events] == [("session.created", 901)]
    assert do(app, sid, "undo")["last_user_text"] == "line 900"


def test_the_agent_is_told_what_was_imported(app: App) -> None:
    sid = take_in(app, messages=TALK, agent="claude")["session_id"]
    memory = knows(app, sid)
    assert "question A" in memory
    assert "reply A" in memory
    assert how(app, sid) == ["transcript"]
    assert state(app, sid)["title"] == "question A"


def test_an_export_reads_back_equal(app: App, other: App) -> None:
    sid = app.session(title="Notes", meta={"a": [1, None]}, labels=["x"], permission_mode="deny_all")
    app.http.patch(f"/sessions/{sid}", json={"pinned": True})
    say(app, sid, "echo aardvark")
    do(app, sid, "clear")
    say(app, sid, "think hm\necho two\nplan a; b")
    app.turn(sid, "error broken")
    app.turn(sid, "tool look 1\ntool look 2", max_tool_calls=1, max_seconds=60)
    say(app, sid, "echo xylophone")
    do(app, sid, "undo")
    first = exported(app, sid)
    assert "xylophone" not in json.dumps(first)
    assert first["turns"][-1]["stopped_by"] == "max_tool_calls"
    assert first["turns"][-1]["limits"]["max_seconds"] == 60
    again = exported(other, take_in(other, format="clawdforge", export=first)["session_id"])
    as_text = take_in(other, format="clawdforge", text=json.dumps(first))["session_id"]
    for whole in (again, exported(other, as_text)):
        for key in OWN:
            whole["session"].pop(key)
    for key in OWN:
        first["session"].pop(key)
    kept = [{**message, "seq": 0} for message in first["messages"]]
    assert [{**message, "seq": 0} for message in again["messages"]] == kept
    assert again["turns"] == first["turns"]
    assert again["session"] == first["session"]
    copy = take_in(other, format="clawdforge", export=again)["session_id"]
    assert texts(other, copy) == texts(app, sid)
    memory = knows(other, copy)
    assert "two" in memory
    assert "aardvark" not in memory, "archived before"


def test_the_log_comes_along_when_it_is_asked_for(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    whole = exported(app, sid, events=True)
    assert whole["events"] == app.http.get(f"/sessions/{sid}/events").json()["events"]
    assert exported(app, sid)["events"] is None


def test_markdown_is_for_people(app: App) -> None:
    sid = app.session(title="Notes")
    say(app, sid, "echo hello")
    reply = app.http.get(f"/sessions/{sid}/export", params={"format": "md"})
    assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
    assert reply.text.startswith("# Notes\n")
    assert "## User\n\necho hello\n\n## Assistant\n\nhello\n" in reply.text


def test_a_page_of_html_is_for_people_who_have_no_server(app: App) -> None:
    sid = app.session(title="<Notes>")
    say(app, sid, "echo before")
    do(app, sid, "clear")
    say(app, sid, "echo <b>hello</b>")
    reply = app.http.get(f"/sessions/{sid}/export", params={"format": "html"})
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-disposition"] == f'attachment; filename="session-{sid}.html"'
    assert "<h1>&lt;Notes&gt;</h1>" in reply.text
    assert "<pre>&lt;b&gt;hello&lt;/b&gt;</pre>" in reply.text
    assert reply.text.count("<h2>User (archived)") == reply.text.count("<h2>User <") == 1


def an_export(**fields: Any) -> dict[str, Any]:
    """The body that imports one turn with these fields."""
    turn = {"turn_index": 1, "prompt": "p", "outcome": "completed", **fields}
    return {"format": "clawdforge", "export": {"session": {}, "messages": [], "turns": [turn]}}


def an_edited_session(**fields: Any) -> dict[str, Any]:
    return {"format": "clawdforge", "export": {"session": fields, "messages": [], "turns": []}}


def an_edited_message(**fields: Any) -> dict[str, Any]:
    message = {"seq": 1, "role": "user", "content": "hi", "ts": "2026-01-02T03:04:05Z", **fields}
    return {"format": "clawdforge", "export": {"session": {}, "messages": [message], "turns": []}}


def test_a_long_title_is_cut_to_what_a_session_may_have(app: App) -> None:
    assert take_in(app, **an_edited_session(title="t" * 501))["title"] == "t" * 500
    file = json.dumps({"type": "summary", "summary": "s" * 501}) + "\n" + ASKED
    assert take_in(app, format="claude", text=file)["title"] == "s" * 500


def test_numbers_that_no_column_holds_may_stand_where_no_column_is(app: App) -> None:
    usage = {"input_tokens": 2**63, "counter": {"all": 2**63}}
    sid = take_in(app, **an_export(usage=usage))["session_id"]
    assert usage.items() <= exported(app, sid)["turns"][0]["usage"].items()
    assert take_in(app, **an_edited_message(seq=2**63, turn=2**63))["message_count"] == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "messages"),
        ({"messages": [{"role": "user", "content": "a"}, {"content": "b"}]}, "message 1"),
        ({"messages": [{"role": "user", "content": 5}]}, "message 0"),
        ({"format": "claude"}, "text"),
        ({"format": "claude", "text": "junk\n[1]\n{}"}, "no message"),
        ({"format": "codex", "text": "{"}, "no message"),
        ({"format": "clawdforge", "text": "{"}, "export"),
        ({"format": "clawdforge", "export": {"session": {}, "messages": []}}, "turns"),
        ({"format": "clawdforge", "export": {"version": 9, "session": {}, "messages": [], "turns": []}}, "9"),
        (an_export(usage=[1]), "usage"),
        (an_export(usage={"input_tokens": "many"}), "input_tokens"),
        (an_export(retry_of={}), "retry_of"),
        (an_export(retry_of=2**63), "turn 1"),
        (an_export(turn_index=2**63), "number of a turn"),
        (an_edited_session(model=5), "model"),
        (an_edited_session(agent={}, model="m" * 129), "model"),
        (an_edited_session(persona={}), "persona"),
        (an_edited_session(meta=[1]), "meta"),
        (an_edited_session(labels=["a" * 65]), "labels.0"),
        (an_edited_session(labels=["a"] * 65), "labels"),
        (an_edited_session(permission_mode="sometimes"), "sometimes"),
        (an_edited_message(token_count=2**63), "message 1"),
        (an_edited_message(token_count=-1), "message 1"),
        (
            {
                "format": "codex",
                "text": f'{{"type":"turn_context","payload":{{"model":"{"m" * 129}"}}}}\n' + SAID,
            },
            "model",
        ),
        ({"format": "other"}, "format"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(app: App, body: dict[str, Any], words: str) -> None:
    reply = app.http.post("/sessions/import", json=body)
    assert reply.status_code == 422, reply.text
    assert words in reply.json()["error"]
    assert app.http.get("/sessions").json()["count"] == 0


def test_search_shows_the_place_and_only_what_is_visible(app: App, other: App) -> None:
    sid = app.session(title="Music")
    say(app, sid, "echo the quick xylophone plays")
    say(app, sid, "echo marimba")
    app.http.patch(f"/sessions/{sid}", json={"title": "Music"})
    page = app.http.get("/search", params={"q": "xylophone quick"}).json()
    hit = page["hits"][0]
    assert (hit["session_id"], hit["title"], hit["seq"], hit["turn"], hit["role"]) == (
        *(sid, "Music", 2, 1, "assistant"),
    )
    assert hit["snippet"] == "the «quick» «xylophone» plays"
    assert page["count"] == 2
    paged = app.http.get("/search", params={"q": "xylo", "limit": 1}).json()
    rest = app.http.get("/search", params={"q": "xylo", "limit": 1, "cursor": paged["next"]}).json()
    assert [paged["hits"][0]["seq"], rest["hits"][0]["seq"], rest["next"]] == [2, 1, None]
    assert found(other, "xylophone") == []
    assert app.http.get("/search", params={"q": "marimba", "session_id": sid}).json()["count"] == 2
    for unknown in ("nope", "%00"):
        assert app.http.get("/search", params={"q": "x", "session_id": unknown}).status_code == 404
    foreign = other.http.get("/search", params={"q": "x", "session_id": sid})
    assert foreign.content == other.http.get("/search", params={"q": "x", "session_id": "nope"}).content
    for odd in ('"', "AND OR", "a*", "(", "NEAR(", "'; DROP TABLE", "\0", "*" * 900):
        assert app.http.get("/search", params={"q": odd}).status_code == 200, odd
    assert app.http.get("/search").status_code == 400
    do(app, sid, "undo", turns=2)
    assert found(app, "xylophone") == []
