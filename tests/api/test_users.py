"""Agents of a server that runs as root: each app is a user of its own, and its files stay that user's."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.upkeep.backup import backup, restore
from tests.api.harness import App, Server, until
from tests.api.talk import do, recall, say, state
from tests.needs import needs
from tests.support.folders import everything_below

pytestmark = needs("users")
TOKEN = ".agent/token.json"


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("operator")
    (home / TOKEN).parent.mkdir()
    (home / TOKEN).write_text("first")
    (home / TOKEN).chmod(0o600)
    return home


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, operator: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("users")
    config = folder / "clawdforge.toml"
    config.write_text(
        f'[agents.claude]\ncredentials = ["{TOKEN}"]\n[agents.claude.settings]\n".mine" = "x"\n'
    )
    server = Server(folder / "data", {"HOME": str(operator)}, "--config", str(config))
    yield server
    server.stop()


def user_of(app: App, sid: str) -> int:
    return int(say(app, sid, "terminal id -u").split()[-1])


def owners(server: Server, sid: str) -> set[int]:
    """Of everything in the session's home and workspace but links, which nobody needs to own."""
    tops = [server.data_dir / name / sid for name in ("homes", "workspaces")]
    paths = [path for top in tops for path in (top, *everything_below(top)) if not path.is_symlink()]
    return {path.stat().st_uid for path in paths}


def go_on(server: Server, app: App) -> App:
    """The same app on a server that is started again."""
    server.start()
    return replace(app, http=server.client(app.token))


def test_health_names_the_wall(app: App) -> None:
    assert "uid" in app.http.get("/healthz").json()["sandbox_walls"]


def test_each_app_has_a_user_of_its_own_and_local_stays_the_servers(server: Server) -> None:
    one, two, local = server.app(), server.app(), server.app("local")
    sessions = [(app, app.session()) for app in (one, one, two, local)]
    users = [user_of(app, sid) for app, sid in sessions]
    assert users[0] == users[1] != users[2] != 0
    assert users[3] == 0
    for (_, sid), user in zip(sessions, users, strict=True):
        assert owners(server, sid) == {user}


def test_whatever_writes_there_the_files_stay_the_users(server: Server, app: App) -> None:
    sid = app.session()
    user = user_of(app, sid)
    say(app, sid, "write a.txt first\nfs-write deep/er/b.txt through-the-server\nterminal rm $HOME/.mine")
    token = app.http.post("/files", files={"file": ("f.txt", b"attached")}).json()["file_token"]
    reply = app.turn(sid, "terminal cat $HOME/uploads/*/f.txt; echo more >>deep/er/b.txt", files=[token])
    assert "attached" in reply.text
    assert (server.data_dir / "homes" / sid / ".mine").read_text() == "x"
    assert owners(server, sid) == {user}
    say(app, sid, "terminal echo second >a.txt; rm -r deep; echo new >c.txt")
    do(app, sid, "undo", files=True)
    assert owners(server, sid) == {user}
    assert "through" in say(
        app, sid, "terminal echo third >>a.txt && cat deep/er/b.txt && echo x >>deep/er/b.txt"
    )
    assert owners(server, sid) == {user}
    assert "terminal echo third" in json.dumps(recall(app, sid))


def test_a_fork_belongs_to_the_same_user(server: Server, app: App) -> None:
    sid = app.session()
    user = user_of(app, sid)
    fork = do(app, sid, "fork")["session_id"]
    assert user_of(app, fork) == user
    assert len(recall(app, fork)) == 2
    assert (server.data_dir / "homes" / fork).stat().st_uid == user


def test_what_the_server_keeps_is_its_own(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    sid = app.session()
    say(app, sid, "write a.txt first")
    copy = server.data_dir / "copies" / sid / "1.json"
    until(copy.exists, "the copy of the home")
    server.stop()  # nothing is renamed while we look
    for top in (copy.parent, server.data_dir / "shadows" / sid):
        assert {path.stat().st_uid for path in (top, *everything_below(top))} == {0}
    assert server.data_dir.stat().st_mode & 0o777 == 0o700


def test_a_credential_is_shared_with_the_operator_and_other_apps(
    app: App, other: App, operator: Path
) -> None:
    mine, theirs = app.session(), other.session()
    assert "first" in say(app, mine, f"terminal cat $HOME/{TOKEN}")
    say(app, mine, f"terminal printf refreshed >$HOME/{TOKEN}")
    until(lambda: (operator / TOKEN).read_text() == "refreshed" or None, "what follows the turn")
    assert (operator / TOKEN).stat().st_uid == 0
    assert "refreshed" in say(other, theirs, f"terminal cat $HOME/{TOKEN}")


def test_a_folder_of_the_operators_is_worked_in_as_its_owner(
    server: Server, app: App, tmp_path: Path
) -> None:
    theirs, roots = tmp_path / "theirs", tmp_path / "roots"
    for folder in (theirs, roots):
        folder.mkdir()
    os.chown(theirs, 1234, 1234)
    server.grant(app, tmp_path)
    for folder, user in ((theirs, 1234), (roots, 0)):
        sid = app.session(cwd=str(folder))
        assert user_of(app, sid) == user
        say(app, sid, "write a.txt x\nfs-write b.txt y")
        assert {path.stat().st_uid for path in folder.iterdir()} == {user}


def test_users_stay_after_a_kill_and_files_of_before_are_given(start: Callable[..., Server]) -> None:
    """First a server that gives nobody a user, as all did before; then one that does."""
    server = start(AGENT_UIDS="off")
    app = server.app()
    sid = app.session()
    assert user_of(app, sid) == 0
    say(app, sid, "write a.txt first")
    assert "uid" not in app.http.get("/healthz").json()["sandbox_walls"]
    seen = set()
    for _ in range(2):
        server.stop(signal.SIGKILL)
        server._env["CLAWDFORGE_AGENT_UIDS"] = "auto"
        app = go_on(server, app)
        seen.add(user_of(app, sid))
        assert "first" in say(app, sid, "terminal echo more >>a.txt && cat a.txt")
        assert owners(server, sid) == seen
    assert 0 not in seen


def test_a_restored_data_folder_goes_on(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start()
    app = server.app()
    sid = app.session()
    user_of(app, sid)
    say(app, sid, "write a.txt first")
    server.stop()
    backup(server.data_dir, tmp_path / "b.tar", SystemClock())
    shutil.rmtree(server.data_dir)
    restore(tmp_path / "b.tar", server.data_dir)
    assert Path(server.data_dir / "workspaces" / sid / "a.txt").stat().st_uid == 0
    app = go_on(server, app)
    user = user_of(app, sid)
    assert user != 0
    assert "first" in say(app, sid, f"terminal cat {state(app, sid)['cwd']}/a.txt; echo x >>a.txt")
    assert owners(server, sid) == {user}


def test_a_range_that_is_used_up_is_told(start: Callable[..., Server]) -> None:
    server = start(AGENT_UIDS="1900000000-1900000000")
    one, two = server.app(), server.app()
    assert user_of(one, one.session()) == 1_900_000_000
    refused = two.turn(two.session(), "echo hi")
    assert refused.status_code == 502
    assert "CLAWDFORGE_AGENT_UIDS to a larger range" in refused.text
