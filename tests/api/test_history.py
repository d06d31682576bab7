"""Undo, redo, retry, clear and compact: in what is seen, and in what the agent remembers (X-12, X-22)."""

import concurrent.futures

import pytest

from tests.api.harness import App, Server, until
from tests.api.talk import do, everywhere, found, how, knows, messages, post, recall, say, state, texts
from tests.support.folders import everything_below


def test_after_undo_the_agent_does_not_know_and_after_redo_it_does(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    say(app, sid, "echo xylophone")
    before = messages(app, sid)
    cut = do(app, sid, "undo")
    assert (cut["removed_count"], cut["removed_turns"]) == (2, [2])
    assert cut["removed_preview"] == cut["last_user_text"] == "echo xylophone"
    assert texts(app, sid) == ["echo one", "one"]
    assert "xylophone" not in everywhere(app, sid)
    assert found(app, "xylophone") == []
    back = do(app, sid, "redo")
    assert (back["restored_count"], back["restored_turns"]) == (2, [2])
    assert messages(app, sid) == before
    assert found(app, "xylophone") == [(sid, 4), (sid, 3)]
    do(app, sid, "undo")
    assert recall(app, sid) == ["echo one"]
    assert how(app, sid)[1:] == ["restored"]


def test_redo_brings_it_back_to_the_agent_whole(app: App) -> None:
    sid = app.session()
    for word in ("one", "two", "three"):
        say(app, sid, f"echo {word}")
    do(app, sid, "undo")
    do(app, sid, "undo")
    do(app, sid, "redo")
    assert recall(app, sid) == ["echo one", "echo two"]
    assert post(app, sid, "redo").status_code == 200, "the recall itself"
    assert post(app, sid, "redo").json()["code"] == "nothing_to_redo", "something was said since"


def test_the_log_keeps_what_was_cut_and_says_what_was_done(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    do(app, sid, "undo")
    do(app, sid, "redo")
    do(app, sid, "clear")
    events = app.http.get(f"/sessions/{sid}/events").json()["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    told = [event for event in events if event["type"].startswith("history.")]
    assert [event["type"] for event in told] == ["history.cut", "history.restored", "history.cleared"]
    assert told[1]["cut"] == told[0]["seq"]
    assert told[0]["messages"] == told[1]["messages"] == [1, 2]
    assert "echo one" in app.http.get(f"/sessions/{sid}/events").text


def test_undo_of_everything_leaves_an_agent_that_knows_nothing(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    say(app, sid, "echo two")
    assert do(app, sid, "undo", turns=50)["removed_turns"] == [1, 2]
    assert texts(app, sid) == []
    assert state(app, sid)["message_count"] == 0
    reply = post(app, sid, "undo")
    assert (reply.status_code, reply.json()["code"]) == (409, "nothing_to_undo")
    assert "one" not in knows(app, sid)
    assert messages(app, sid)[0]["seq"] == 5, "a seq is never used again"


def test_retry_hands_the_text_back_and_runs_nothing(app: App) -> None:
    """S2-30, S2-36, S2-39."""
    sid = app.session()
    say(app, sid, "echo one")
    say(app, sid, "echo two")
    cut = do(app, sid, "retry")
    assert (cut["last_user_text"], cut["removed_count"], cut["turn_index"]) == ("echo two", 2, None)
    assert texts(app, sid) == ["echo one", "one"]
    assert (state(app, sid)["running_turn"], state(app, sid)["queued_turns"]) == (None, 0)
    do(app, sid, "retry")
    reply = post(app, sid, "retry")
    assert (reply.status_code, reply.json()["error"]) == (409, "no previous message to retry")


def test_retry_with_run_is_a_turn_of_its_own_and_other_words_edit_it(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    say(app, sid, "echo two")
    again = do(app, sid, "retry", run=True)["turn_index"]
    until(lambda: texts(app, sid)[-1] == "two" and not state(app, sid)["running_turn"], "the retry")
    turns = app.http.get(f"/sessions/{sid}/turns").json()["turns"]
    assert [(turn["turn_index"], turn["cut"], turn["retry_of"]) for turn in turns] == [
        (1, False, None),
        (2, True, None),
        (again, False, 2),
    ]
    do(app, sid, "retry", prompt="echo edited")
    until(lambda: texts(app, sid)[-1] == "edited", "the edited one")
    assert texts(app, sid) == ["echo one", "one", "echo edited", "edited"]
    assert recall(app, sid) == ["echo one", "echo edited"]


def test_clear_archives_and_begins_anew(app: App) -> None:
    """X-12."""
    sid = app.session()
    say(app, sid, "echo xylophone")
    do(app, sid, "undo")
    say(app, sid, "echo marimba")
    cleared = do(app, sid, "clear")
    assert (cleared["archived_count"], texts(app, sid)) == (2, [])
    assert texts(app, sid, all=True) == ["echo marimba", "marimba"], "cut is cut, archived can be read"
    assert found(app, "marimba") == []
    assert post(app, sid, "redo").json()["code"] == "nothing_to_redo"
    assert "marimba" not in knows(app, sid)
    assert do(app, sid, "undo", turns=9)["removed_turns"] == [3, 4]
    assert texts(app, sid, all=True) == ["echo marimba", "marimba"]


def test_compact_leaves_a_summary_that_the_agent_knows(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo xylophone")
    made = do(app, sid, "compact", prompt="summary")
    assert made["summary"] == "Summary of 1 prompts: 1. echo xylophone"
    assert made["archived_count"] == 4
    (only,) = messages(app, sid)
    assert (only["is_summary"], only["content"], only["role"]) == (True, made["summary"], "assistant")
    assert texts(app, sid, all=True)[:2] == ["echo xylophone", "xylophone"]
    memory = knows(app, sid)
    assert "Summary of 1 prompts" in memory
    assert '"text": "xylophone"' not in memory
    do(app, sid, "undo", turns=2)
    assert "Summary of 1 prompts" in knows(app, sid), "an undo back to the summary"


@pytest.mark.parametrize("asked", ["error no summary today", "usage 1 1"])
def test_a_summary_that_does_not_come_leaves_the_conversation_as_it_was(app: App, asked: str) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    before = messages(app, sid)
    reply = post(app, sid, "compact", prompt=asked)
    assert reply.status_code in (409, 502), reply.text
    assert messages(app, sid) == before
    assert recall(app, sid) == ["echo one"]


def test_a_cancelled_summary_is_none(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo two"})
    until(lambda: texts(app, sid)[-1] == "two" and not state(app, sid)["running_turn"], "the turn")
    with app.stream(f"/sessions/{sid}/events") as stream:
        stream.upto("turn.ended")
        stream.upto("turn.ended")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(post, app, sid, "compact", prompt="echo half a summary\nhang")
            stream.upto("text")
            app.http.post(f"/sessions/{sid}/cancel")
            reply = asked.result(20)
    assert (reply.status_code, reply.json()["code"]) == (409, "conflict")
    assert texts(app, sid) == ["echo one", "one", "echo two", "two"]


@pytest.mark.parametrize("what", ["undo", "redo", "retry", "clear", "compact", "fork"])
def test_a_head_that_moved_is_409_and_nothing_is_done(app: App, what: str) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    if what == "redo":
        do(app, sid, "undo")
    head = state(app, sid)["head"]
    before = messages(app, sid)
    app.http.patch(f"/sessions/{sid}", json={"title": "moved"})
    reply = post(app, sid, what, expected_head=head)
    assert (reply.status_code, reply.json()["code"]) == (409, "head_moved"), reply.text
    assert reply.json()["head"] == head + 1
    assert messages(app, sid) == before
    assert post(app, sid, what, expected_head=head + 1).status_code == 200


def test_rename_pin_and_labels_are_events_and_keep_the_agents_memory(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    changes = {"title": "Renamed", "pinned": True, "labels": ["a", "b"]}
    reply = app.http.patch(f"/sessions/{sid}", json=changes).json()
    assert {name: reply[name] for name in changes} == changes
    last = app.http.get(f"/sessions/{sid}/events").json()["events"][-1]
    assert (last["type"], last["changes"]) == ("session.changed", changes)
    assert recall(app, sid) == ["echo one"]
    assert state(app, sid)["title"] == "Renamed"
    assert app.http.get("/sessions", params={"label": "b"}).json()["sessions"][0]["session_id"] == sid


def test_a_copy_that_is_gone_means_the_transcript(app: App, server: Server) -> None:
    """X-21, X-22, for any agent."""
    sid = app.session()
    say(app, sid, "echo marimba")
    say(app, sid, "echo xylophone")
    until((server.data_dir / "copies" / sid / "2.json").exists, "the copy")
    (server.data_dir / "copies" / sid / "1.json").unlink()
    do(app, sid, "undo")
    memory = knows(app, sid)
    assert "marimba" in memory
    assert "xylophone" not in memory
    assert how(app, sid)[-1] == "transcript"
    home = server.data_dir / "homes" / sid
    left = [path.read_text() for path in everything_below(home, "*.jsonl")]
    assert not any("xylophone" in text for text in left), "what was taken back does not stay in the home"


def test_an_undo_after_another_agent_came_gives_it_the_transcript(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo marimba")
    assert app.http.patch(f"/sessions/{sid}", json={"agent": "demo"}).status_code == 200
    app.turn(sid, "/echo xylophone")
    do(app, sid, "undo")
    app.http.patch(f"/sessions/{sid}", json={"agent": "claude"})
    do(app, sid, "redo")
    do(app, sid, "undo")
    memory = knows(app, sid)
    assert "marimba" in memory
    assert "xylophone" not in memory
