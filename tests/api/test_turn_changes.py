"""What a turn changed in its workspace, over HTTP: each turn against the files that it began with."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from clawdforge import Forge
from tests.api.harness import App, Server, until
from tests.api.talk import begin, do, say, state

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def changes(app: App, sid: str, turn: int, **params: str) -> dict[str, Any]:
    answer = app.http.get(f"/sessions/{sid}/turns/{turn}/changes", params=params)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def told(app: App, sid: str, turn: int, **params: str) -> dict[str, tuple[str, int, int]]:
    body = changes(app, sid, turn, **params)
    assert (body["reason"], body["truncated"], body["session_id"]) == (None, False, sid)
    return {one["path"]: (one["status"], one["added"], one["removed"]) for one in body["files"]}


def test_each_turn_is_compared_with_the_files_that_it_began_with(app: App) -> None:
    sid = app.session()
    folder = Path(state(app, sid)["cwd"])
    (folder / "before.txt").write_text("there from the start\n")
    say(app, sid, "write a.txt one")
    say(app, sid, "write a.txt two\nwrite b.txt new")
    say(app, sid, "echo nothing")
    assert told(app, sid, 1) == {"a.txt": ("added", 1, 0)}
    assert told(app, sid, 2) == {"a.txt": ("modified", 1, 1), "b.txt": ("added", 1, 0)}
    assert told(app, sid, 3) == {}
    assert told(app, sid, 3, base="first") == {"a.txt": ("added", 1, 0), "b.txt": ("added", 1, 0)}
    assert (changes(app, sid, 2)["base_turn"], changes(app, sid, 3, base="first")["base_turn"]) == (1, 0)
    diff = changes(app, sid, 2, path="a.txt")
    assert (diff["path"], diff["binary"], diff["truncated"]) == ("a.txt", False, False)
    assert "\n-one\n" in diff["diff"]
    assert "\n+two\n" in diff["diff"]

    do(app, sid, "undo", turns=2, files=True)
    say(app, sid, "write c.txt after the undo")
    assert told(app, sid, 4) == {"c.txt": ("added", 1, 0)}, "what the undo took away is not of this turn"
    assert changes(app, sid, 4)["base_turn"] is None
    assert told(app, sid, 2) == {"a.txt": ("modified", 1, 1), "b.txt": ("added", 1, 0)}
    do(app, sid, "undo")
    say(app, sid, "write d.txt x")
    assert told(app, sid, 5) == {"d.txt": ("added", 1, 0)}, "an undo without files moved none"

    fork = do(app, sid, "fork", after_turn=1)["session_id"]
    assert told(app, fork, 1) == {"a.txt": ("added", 1, 0)}
    say(app, fork, "write e.txt x")
    assert told(app, fork, 2) == {"e.txt": ("added", 1, 0)}, "what the other session did since is not of it"

    for path, status in (("nothing", 404), ("", 422), ("a.txt", 404)):
        answer = app.http.get(f"/sessions/{sid}/turns/5/changes", params={"path": path})
        assert answer.status_code == status, path
    assert app.http.get(f"/sessions/{sid}/turns/9/changes").status_code == 404
    assert app.http.get(f"/sessions/{sid}/turns/1/changes", params={"base": "last"}).status_code == 422
    assert app.http.delete(f"/sessions/{sid}").status_code == 200
    assert told(app, sid, 1) == {"a.txt": ("added", 1, 0)}, "also of a session that is closed"


def test_where_nothing_was_recorded_the_reason_is_said(server: Server, app: App, tmp_path: Path) -> None:
    named = tmp_path / "no repository"
    named.mkdir()
    with server.admin() as admin:
        granted = {"app_name": app.name, "workspace_roots": [str(tmp_path)]}
        assert admin.post("/admin/apps", json=granted).status_code == 200
    plain = app.session(cwd=str(named))
    say(app, plain, "write a.txt one")
    body = changes(app, plain, 1)
    assert (body["files"], "not recorded" in body["reason"]) == ([], True)
    assert "not recorded" in changes(app, plain, 1, path="a.txt")["reason"]
    sid = app.session()
    begin(app, sid)  # one that is ended before its agent has heard it has no files to compare with
    running = 1
    waiting = app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo x"}).json()["turn_index"]
    assert changes(app, sid, running)["reason"] == "the turn has not ended yet"
    assert app.http.delete(f"/sessions/{sid}/turns/{waiting}").status_code == 200
    assert changes(app, sid, waiting)["reason"] == "the turn never began"
    app.http.post(f"/sessions/{sid}/cancel")
    until(lambda: not state(app, sid)["running_turn"], "the cancel")
    assert told(app, sid, running) == {}


def test_the_sdk_asks_for_changes_and_for_one_file(server: Server, app: App) -> None:
    with Forge(server.url, token=app.token) as forge, forge.session() as session:
        session.turn("write a.txt one")
        assert [one.path for one in session.turn_changes(1).files] == ["a.txt"]
        assert [one.added for one in session.turn_changes(1, base="first").files] == [1]
        assert session.turn_diff(1, "a.txt").diff.endswith("+one\n\\ No newline at end of file\n")
