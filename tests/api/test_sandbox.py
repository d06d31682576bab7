"""What agents of a real server see, and what a server says that cannot contain them."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.drivers.processes.walls import find_walls
from clawdforge.wire.local import TOKEN_FILE
from tests.api.harness import App, Server
from tests.api.talk import say
from tests.needs import needs

CANARY = "canary-of-the-operator"


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("operator")
    for name in (".ssh/id_rsa", "notes.txt", ".config/gh/hosts.yml", "tools/words.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(CANARY)
    return home


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, operator: Path) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("sandbox")
    config = folder / "clawdforge.toml"
    config.write_text('[agents.claude]\nreadable = ["~/tools"]\n')
    server = Server(folder / "data", {"HOME": str(operator)}, "--config", str(config))
    yield server
    server.stop()


@pytest.fixture
def app(server: Server) -> App:
    return server.app()


@needs("bwrap")
def test_an_agent_and_its_terminals_see_no_file_of_the_operators(app: App, operator: Path) -> None:
    sid = app.session()
    for name in (".ssh/id_rsa", "notes.txt", ".config/gh/hosts.yml"):
        assert CANARY not in say(app, sid, f"read {operator / name}")
        assert CANARY not in say(app, sid, f"terminal cat {operator / name}")
    listed = say(app, sid, f"terminal ls -A /root /home {operator}")
    assert ".ssh" not in listed
    assert "notes.txt" not in listed


@needs("bwrap")
def test_a_link_that_one_agent_planted_leads_no_other_agent_out(tmp_path: Path, operator: Path) -> None:
    """Also after a restart: what sessions work in is known from the database."""
    shared = tmp_path / "shared"
    (shared / "docs").mkdir(parents=True)
    (shared / "docs" / "words.txt").write_text("words of the operator")
    config = tmp_path / "clawdforge.toml"
    config.write_text(f'[agents.claude]\nreadable = ["{shared}/docs"]\n')
    server = Server(tmp_path / "data", {"HOME": str(operator)}, "--config", str(config))
    try:
        app = server.app()
        server.grant(app, shared)
        planter, reader = app.session(cwd=str(shared)), app.session()
        assert "words of the operator" in say(app, reader, f"read {shared}/docs/words.txt")
        say(app, planter, f"terminal mv docs aside; ln -s {operator}/.ssh docs")
        assert (shared / "docs").is_symlink()
        server.stop()
        server.start()
        app = replace(app, http=server.client(app.token))
        for line in (f"read {shared}/docs/id_rsa", f"terminal cat {operator}/.ssh/id_rsa"):
            assert CANARY not in say(app, reader, line)
    finally:
        server.stop()


@needs("bwrap")
def test_an_agent_sees_what_its_entry_names_and_cannot_change_it(app: App, operator: Path) -> None:
    sid = app.session()
    words = operator / "tools" / "words.txt"
    assert CANARY in say(app, sid, f"read {words}")
    said = say(app, sid, f"terminal echo x 2>&1 >>{words}")
    assert "Read-only" in said or "Permission denied" in said  # the second if the app has a user of its own
    assert words.read_text() == CANARY


@needs("bwrap")
def test_an_agent_can_work(app: App) -> None:
    sid = app.session()
    assert "hello" in say(app, sid, "terminal git init -q . && echo hello >a && git add a && cat a")
    workspace = Path(app.http.get(f"/sessions/{sid}").json()["cwd"])
    assert (workspace / "a").read_text() == "hello\n"


@needs("bwrap")
def test_a_terminal_cannot_have_its_own_arguments_shown(app: App, operator: Path) -> None:
    sid = app.session()
    assert CANARY not in say(app, sid, f"terminal {operator}/notes.txt")
    assert CANARY not in say(app, sid, f"terminal env PYTHONPATH={operator} cat {operator}/notes.txt")


@pytest.mark.parametrize("level", ["auto", "full", "off"])
def test_a_server_without_a_sandbox_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """As on a kernel that allows no user namespaces."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho bwrap: No permissions to create new namespace >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    server = Server(tmp_path / "data", {"CLAWDFORGE_SANDBOX": level})
    try:
        health = server.client().get("/healthz").json()
        alone = level == "auto" and find_walls().files  # what is left where there is no namespace
        assert health["sandbox"] == ("landlock" if alone else "tree")
        app = server.app()
        reply = app.turn(app.session(), "echo hello")
        words = server.log_text
    finally:
        server.stop()
    if level == "off":
        assert (reply.status_code, health["sandbox_reason"]) == (200, "bwrap does not work here")
        assert "contained" not in words
        return
    assert health["sandbox_reason"] == "bwrap does not work here"
    assert "No permissions to create new namespace" in words
    if level == "auto":
        assert reply.status_code == 200
        lack = "agents are not contained, they can read and write whatever this user can"
        assert ("agents see other processes and the names of all files" if alone else lack) in words
    else:
        assert reply.status_code == 502
        assert "sandbox full needs bwrap" in reply.json()["error"]
        assert "no agent can be started" in words


@needs("bwrap")
def test_git_works_in_a_worktree_of_the_operators_own(server: Server, tmp_path: Path) -> None:
    """The app `local` may name any folder; another app's agent does not see a repository outside its own."""
    git = ["git", "-C", str(tmp_path / "main"), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", tmp_path / "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", tmp_path / "side"], check=True)
    token = (server.data_dir / TOKEN_FILE).read_text().strip()
    local = App("local", token, "", server.client(token))
    mine = local.session(cwd=str(tmp_path / "side"))
    assert "## side" in say(local, mine, "terminal git status -sb")
    local.http.delete(f"/sessions/{mine}")  # two apps never work in one folder
    other = server.app()
    server.grant(other, tmp_path / "side")
    assert "not a git repository" in say(
        other, other.session(cwd=str(tmp_path / "side")), "terminal git status -sb"
    )
