"""Where sessions work: folders that are granted, folders that were swapped, and folders of two apps."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clawdforge.wire.local import TOKEN_FILE
from tests.api.harness import App, Server, until
from tests.api.talk import begin, do, post, say, state, texts

CANARY = "CANARY-of-another-folder"
Swap = Callable[[Path, Path], None]


def put_app(server: Server, app_name: str, **body: Any) -> dict[str, Any]:
    reply = server.admin().post("/admin/apps", json={"app_name": app_name, **body})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()["app"]
    return found


def refusal(app: App, cwd: Path | str, path: str = "/sessions", **body: Any) -> dict[str, Any]:
    reply = app.http.post(path, json={"cwd": str(cwd), **body})
    assert (reply.status_code, reply.json()["code"]) == (400, "workspace_refused"), reply.text
    found: dict[str, Any] = reply.json()
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder for projects, with a decoy beside the session's own."""
    for name in ("mine", "decoy"):
        (tmp_path / "root" / name).mkdir(parents=True)
    (tmp_path / "root" / "decoy" / "secret.txt").write_text(CANARY)
    return tmp_path / "root"


def swap_by_link(mine: Path, decoy: Path) -> None:
    mine.symlink_to(decoy)


def swap_by_rename(mine: Path, decoy: Path) -> None:
    decoy.rename(mine)


def vanish(_mine: Path, _decoy: Path) -> None:
    """Nothing comes to its place."""


@pytest.mark.parametrize("swap", [swap_by_link, swap_by_rename, vanish])
def test_a_session_whose_folder_was_swapped_can_be_read_and_does_nothing(
    server: Server, app: App, root: Path, swap: Swap
) -> None:
    server.grant(app, root)
    mine, decoy = root / "mine", root / "decoy"
    (mine / ".git").mkdir()
    sid = app.session(cwd=str(mine))
    say(app, sid, "write a.txt first")
    mine.rename(root / "aside")
    swap(mine, decoy)
    refused = app.turn(sid, "read secret.txt\nwrite b.txt hello")
    assert refused.json()["code"] == "workspace_changed", refused.text
    assert "put the folder back, or start a new session" in refused.json()["error"]
    for what, body in (("fork", {}), ("undo", {"files": True})):
        reply = post(app, sid, what, **body)
        assert (reply.status_code, reply.json()["code"]) == (409, "workspace_changed"), reply.text
    assert texts(app, sid)[:2] == ["write a.txt first", "wrote a.txt"], "nothing was undone"
    for path in ("", "/events", "/messages", "/turns", "/export"):
        reply = app.http.get(f"/sessions/{sid}{path}")
        assert reply.status_code == 200
        assert CANARY not in reply.text
    assert sorted(path.name for path in (decoy if decoy.exists() else mine).glob("*")) in ([], ["secret.txt"])
    if mine.is_symlink():
        mine.unlink()
    elif mine.exists():
        mine.rename(decoy)
    (root / "aside").rename(mine)
    assert say(app, sid, "read a.txt") == "first"


@pytest.mark.parametrize("swap", [swap_by_link, swap_by_rename])
def test_a_folder_that_is_swapped_while_a_turn_runs_is_neither_read_nor_written(
    server: Server, app: App, root: Path, swap: Swap
) -> None:
    server.grant(app, root)
    mine, decoy = root / "mine", root / "decoy"
    sid = app.session(cwd=str(mine))
    wait = "terminal touch waiting; while [ ! -e go ]; do sleep 0.02; done; echo went on"
    uses = "fs-read secret.txt\nfs-write out.txt x\nterminal cat secret.txt"
    app.http.post(f"/sessions/{sid}/turns", json={"prompt": f"{wait}\n{uses}"})
    until((mine / "waiting").exists, "the command in the terminal")
    mine.rename(root / "aside")
    swap(mine, decoy)
    (root / "aside" / "go").touch()
    until(lambda: state(app, sid)["running_turn"] is None, "the turn's end")
    said = json.dumps(app.http.get(f"/sessions/{sid}/events", params={"limit": 1000}).json())
    assert "went on" in said
    assert CANARY not in said
    assert not (mine / "out.txt").exists()


def test_apps_name_no_folder_until_one_is_granted(server: Server, app: App, root: Path) -> None:
    assert "clawdforge app grant" in refusal(app, root / "mine")["error"]
    server.grant(app, root / "mine")
    assert state(app, app.session(cwd=str(root / "mine")))["cwd"] == str(root / "mine")
    outside = refusal(app, root / "decoy")
    assert outside == refusal(app, root / "nowhere") == refusal(app, "/etc") == refusal(app, "/no/such")
    assert str(root) not in outside["error"]
    (root / "mine" / "out").symlink_to(root / "decoy")
    assert refusal(app, root / "mine" / "out") == outside


def test_the_operators_own_app_names_any_folder(start: Callable[..., Server], root: Path) -> None:
    server = start()
    token = (server.data_dir / TOKEN_FILE).read_text().strip()
    local = App("local", token, "", server.client(token))
    assert say(local, local.session(cwd=str(root / "decoy")), "read secret.txt") == CANARY
    for bad in (server.data_dir, server.data_dir / "workspaces", server.data_dir.parent, "/"):
        assert "data folder" in refusal(local, bad)["error"]


def test_grants_and_limits_are_kept_unless_they_are_named(start: Callable[..., Server], root: Path) -> None:
    server = start()
    app = server.app("granted")
    folders = [str(root / "mine"), str(root / "decoy")]
    put_app(server, "granted", limits={"max_sessions": 7}, workspace_roots=folders)
    server.stop()
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    for body in ({}, {"limits": {"max_sessions": 8}}, {"limits": None, "workspace_roots": None}):
        assert put_app(server, "granted", **body)["workspace_roots"] == folders
    app.session(cwd=folders[0])
    shutil.rmtree(root / "mine")
    assert "it does not exist; ask the operator" in refusal(app, folders[0])["error"]
    kept = put_app(server, "granted", workspace_roots=[folders[0], str(root)])
    assert (kept["workspace_roots"], kept["limits"]["max_sessions"]) == ([folders[0], str(root)], 8)
    assert put_app(server, "granted", workspace_roots=[])["workspace_roots"] == []
    refusal(app, folders[1])
    entries = server.admin().get("/admin/audit", params={"app_name": "granted"}).json()["entries"]
    granted = [entry["details"]["folders"] for entry in entries if entry["event"] == "folders_granted"]
    assert granted == [folders, [folders[0], str(root)], []]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/admin/apps", {"app_name": "a", "limit": {}}, "limit"),
        ("/admin/apps", {"app_name": "a", "limits": {"max_session": 1}}, "max_session"),
        ("/admin/apps", {"app_name": "a", "workspace_root": []}, "workspace_root"),
        ("/admin/tokens", {"app_name": "a", "expires": 5}, "expires"),
    ],
)
def test_a_mistyped_field_of_an_operator_is_refused_by_name(
    server: Server, path: str, body: dict[str, Any], field: str
) -> None:
    reply = server.admin().post(path, json=body)
    assert reply.status_code == 422
    assert field in reply.json()["error"]


def test_only_real_folders_are_granted(server: Server, app: App, root: Path) -> None:
    (root / "link").symlink_to(root / "mine")
    for bad, why in (("mine", "absolute"), (str(root / "link"), "link"), (str(root / "no"), "not exist")):
        body = {"app_name": app.name, "workspace_roots": [bad]}
        reply = server.admin().post("/admin/apps", json=body)
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), reply.text
        assert why in reply.json()["error"]


def test_two_apps_never_work_in_one_folder_nor_inside_each_others(
    server: Server, app: App, other: App, root: Path
) -> None:
    for one in (app, other):
        server.grant(one, root)
    (root / "mine" / "inner").mkdir()
    first = app.session(cwd=str(root / "mine"))
    again = app.session(cwd=str(root / "mine" / "inner"))
    outside = refusal(other, "/etc")
    for taken in (root / "mine", root, root / "mine" / "inner"):
        assert refusal(other, taken) == outside, "as if it had never been granted"
        assert refusal(other, taken, "/sessions/import", messages=[]) == outside
    beside = other.session(cwd=str(root / "decoy"))
    assert refusal(app, root) == outside
    app.http.delete(f"/sessions/{again}")
    refusal(other, root / "mine" / "inner")
    app.http.delete(f"/sessions/{first}")
    other.session(cwd=str(root / "mine" / "inner"))
    reply = app.http.post(f"/sessions/{first}/reopen")
    assert (reply.status_code, reply.json()["code"], reply.json()["error"]) == (
        400,
        "workspace_refused",
        outside["error"],
    )
    assert say(other, beside, "read secret.txt") == CANARY


def test_refused_sessions_leave_no_folder(start: Callable[..., Server]) -> None:
    server = start(MAX_LIVE_SESSIONS="1")
    app = server.app()
    kept = app.session()
    many = [{"role": "user", "content": "hi"}] * 300
    for path, body in (
        ("/sessions", {}),
        ("/sessions", {"agent": "nobody"}),
        ("/sessions", {"parent_session_id": "nobody"}),
        ("/sessions/import", {"messages": many[:1], "retention": "ttl"}),
        ("/sessions/import", {"messages": many, "retention": "ttl"}),
    ):
        assert app.http.post(path, json=body).status_code in (400, 404, 429, 503), path
    assert [path.name for path in (server.data_dir / "workspaces").iterdir()] == [kept]


def test_a_data_folder_that_was_copied_goes_on_where_it_is(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    sid = app.session()
    say(app, sid, "write a.txt first")
    server.stop()
    copy = server.data_dir.with_name("copy")
    shutil.copytree(server.data_dir, copy, symlinks=True)
    shutil.rmtree(server.data_dir)
    copy.rename(server.data_dir)
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    assert say(app, sid, "read a.txt") == "first"
    workspace = Path(state(app, sid)["cwd"])
    workspace.rename(workspace.with_name("aside"))
    workspace.mkdir()
    assert app.turn(sid, "echo hi").json()["code"] == "workspace_changed", "it was recorded again"


def test_everybody_in_a_folder_is_held_while_its_files_are_put_back(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    sid = app.session()
    say(app, sid, "write a.txt first")
    say(app, sid, "write a.txt second")
    fork = do(app, sid, "fork")["session_id"]
    folder = Path(state(app, sid)["cwd"])
    begin(app, fork)
    reply = post(app, sid, "undo", files=True)
    assert (reply.status_code, reply.json()["code"]) == (409, "session_busy"), reply.text
    assert fork in reply.json()["error"]
    assert (folder / "a.txt").read_text() == "second"
    app.http.post(f"/sessions/{fork}/cancel", json={})
    say(app, fork, "daemon a.txt")
    until(lambda: (folder / "a.txt").read_text() != "second", "the writer in the background")
    do(app, sid, "undo", files=True)
    assert (folder / "a.txt").read_text() == "first"
    alive = server.client().get("/healthz").json()["live_agents"]
    assert alive == 0, "who wrote there was ended first, with all that it had started"
    assert say(app, fork, "read a.txt") == "first", "and goes on afterwards"


def test_a_restore_that_a_crash_cut_off_waits_for_others_in_the_folder(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    sid = app.session()
    say(app, sid, "write a.txt first")
    say(app, sid, "write a.txt second")
    fork = do(app, sid, "fork")["session_id"]
    folder = Path(state(app, sid)["cwd"])
    tree = (server.data_dir / "shadows" / sid / "refs" / "turns" / "1").read_text().strip()
    server.stop()
    server.sql("UPDATE sessions SET files_plan = ? WHERE session_id = ?", tree, sid)
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    begin(app, fork)
    refused = app.turn(sid, "read a.txt")
    assert (refused.json()["code"], fork in refused.json()["error"]) == ("session_busy", True), refused.text
    assert (folder / "a.txt").read_text() == "second"
    app.http.post(f"/sessions/{fork}/cancel", json={})
    assert say(app, sid, "read a.txt") == "first"


def identities(server: Server) -> dict[str, str | None]:
    return {row[0]: row[1] for row in server.sql("SELECT session_id, workspace_identity FROM sessions")}


def test_the_identity_is_recorded_with_the_session_and_shared_by_forks(
    start: Callable[..., Server], root: Path
) -> None:
    server = start(WORKSPACE_ROOTS=str(root))
    app = server.app()
    named, own = app.session(cwd=str(root / "mine")), app.session()
    fork = do(app, named, "fork")["session_id"]
    found = identities(server)
    inode = (root / "mine").stat().st_ino
    assert found[named] == found[fork] != found[own]
    assert str(found[named]).split(":")[1] == str(inode)
