"""Forks: one past, two futures, one workspace. And all of it after a kill, with agents that cannot load."""

import signal
from collections.abc import Callable

import pytest

from tests.api.harness import AGENT, App, Server, until
from tests.api.talk import begin, do, how, knows, messages, post, recall, say, state, texts


def test_both_know_the_common_past_and_not_each_others_at_the_same_time(app: App) -> None:
    sid = app.session(title="Trunk", meta={"a": 1}, labels=["x"])
    say(app, sid, "echo common")
    other = do(app, sid, "fork")["session_id"]
    say(app, sid, "echo mine")
    say(app, other, "echo yours")
    assert recall(app, sid) == ["echo common", "echo mine"]
    assert recall(app, other) == ["echo common", "echo yours"]
    assert texts(app, other) == ["echo common", "common", "echo yours", "yours"]
    assert how(app, other)[0] == "loaded"
    row = state(app, other)
    assert (row["forked_from"], row["title"], row["meta"], row["labels"]) == (sid, "Trunk", {"a": 1}, ["x"])
    assert row["cwd"] == state(app, sid)["cwd"]


def test_a_session_that_is_closed_in_a_turn_leaves_the_memory_of_its_agent(app: App) -> None:
    for _ in range(3):
        sid = app.session()
        say(app, sid, "echo before")
        begin(app, sid)
        assert app.http.delete(f"/sessions/{sid}").status_code == 200
        other = do(app, sid, "fork")["session_id"]
        assert say(app, other, "echo more") == "more"
        assert how(app, other) == ["loaded"]


def test_a_fork_of_an_earlier_turn(app: App) -> None:
    sid = app.session()
    for word in ("one", "two", "three"):
        say(app, sid, f"echo {word}")
    other = do(app, sid, "fork", after_turn=1, title="Earlier")["session_id"]
    assert (state(app, other)["title"], texts(app, other)) == ("Earlier", ["echo one", "one"])
    assert recall(app, other) == ["echo one"]
    empty = do(app, sid, "fork", after_turn=0)["session_id"]
    assert texts(app, empty) == []
    assert "one" not in knows(app, empty)
    for unknown in (4, 99):
        assert post(app, sid, "fork", after_turn=unknown).json()["code"] == "turn_not_found"
    do(app, sid, "undo")
    assert post(app, sid, "fork", after_turn=3).json()["code"] == "turn_not_found", "it was taken back"


def test_while_a_turn_runs_the_last_one_that_ended_is_forked(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo common")
    begin(app, sid)
    other = do(app, sid, "fork")["session_id"]
    assert texts(app, other) == ["echo common", "common"]
    assert recall(app, other) == ["echo common"]
    assert state(app, sid)["running_turn"] == 2, "the source goes on"
    assert app.http.post(f"/sessions/{sid}/cancel").json()["cancelled"] == 1


def test_a_fork_of_a_fork_and_undo_in_it(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    second = do(app, sid, "fork")["session_id"]
    say(app, second, "echo two")
    third = do(app, second, "fork")["session_id"]
    do(app, third, "undo")
    assert recall(app, third) == ["echo one"]
    do(app, third, "undo")
    assert "one" not in knows(app, third)
    assert recall(app, second) == ["echo one", "echo two"]
    assert recall(app, sid) == ["echo one"]


def test_a_fork_has_no_part_in_what_the_source_cut(app: App) -> None:
    sid = app.session()
    say(app, sid, "echo one")
    say(app, sid, "echo xylophone")
    do(app, sid, "undo")
    other = do(app, sid, "fork")["session_id"]
    assert post(app, other, "redo").json()["code"] == "nothing_to_redo"
    assert "xylophone" not in knows(app, other)


def test_the_shared_workspace_stays_while_somebody_uses_it(app: App, server: Server) -> None:
    sid = app.session()
    say(app, sid, "write kept.txt precious")
    other = do(app, sid, "fork")["session_id"]
    workspace = server.data_dir / "workspaces" / sid
    assert app.http.post(f"/sessions/{sid}/purge").status_code == 200
    server.admin().post("/admin/sweep")
    until(lambda: not (server.data_dir / "homes" / sid).exists(), "the purge")
    assert (workspace / "kept.txt").read_text() == "precious"
    assert say(app, other, "read kept.txt") == "precious"
    app.http.post(f"/sessions/{other}/purge")
    server.admin().post("/admin/sweep")
    until(lambda: not workspace.exists(), "the workspace's end")
    assert not (server.data_dir / "shadows" / other).exists()


def test_a_fork_counts_against_the_apps_limit(server: Server) -> None:
    app = server.app()
    server.admin().post("/admin/apps", json={"app_name": app.name, "limits": {"max_sessions": 1}})
    sid = app.session()
    say(app, sid, "echo one")
    homes = server.data_dir / "homes"
    before = set(homes.iterdir())
    assert post(app, sid, "fork").status_code == 429
    assert set(homes.iterdir()) == before, "nothing of it is left"


@pytest.mark.parametrize("flags", ["", " --no-load --no-resume", " --no-load"])
def test_all_of_it_again_after_a_kill_and_with_an_agent_that_cannot_load(
    start: Callable[..., Server], flags: str
) -> None:
    server = start(AGENT_CLAUDE=AGENT + flags)
    app = server.app()
    undone, redone, trunk = (app.session() for _ in range(3))
    for sid in (undone, redone):
        say(app, sid, "echo marimba")
        say(app, sid, "echo xylophone")
        do(app, sid, "undo")
    do(app, redone, "redo")
    say(app, trunk, "echo common")
    branch = do(app, trunk, "fork")["session_id"]
    before = {sid: messages(app, sid) for sid in (undone, redone, trunk, branch)}
    server.stop(signal.SIGKILL)
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    assert {sid: messages(app, sid) for sid in before} == before
    memory = knows(app, undone)
    assert "marimba" in memory
    assert "xylophone" not in memory
    memory = knows(app, redone)
    assert "marimba" in memory
    assert "xylophone" in memory
    say(app, trunk, "echo mine")
    say(app, branch, "echo yours")
    mine, yours = knows(app, trunk), knows(app, branch)
    assert "common" in mine
    assert "common" in yours
    assert "yours" not in mine
    assert "mine" not in yours
    expected = "transcript" if "--no-resume" in flags else "loaded" if not flags else "resumed"
    assert how(app, branch)[0] == expected
