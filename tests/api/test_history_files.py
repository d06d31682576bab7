"""Undo with files: the workspace goes back with the history, and forth again; its own .git is not touched."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.harness import App, Server, until
from tests.api.talk import begin, do, post, say, state, texts
from tests.support.folders import files_below

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def files(folder: Path) -> dict[str, str]:
    found = (path for path in files_below(folder) if ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=t", "-c", "user.email=t@t")
    ran = subprocess.run(["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout


def test_undo_and_redo_with_files_in_a_workspace_of_ours(app: App) -> None:
    sid = app.session()
    folder = Path(state(app, sid)["cwd"])
    say(app, sid, "write a.txt first")
    say(app, sid, "write a.txt second\nwrite b.txt new")
    (folder / "c.txt").write_text("by hand, since")
    do(app, sid, "undo", files=True)
    assert files(folder) == {"a.txt": "first"}
    do(app, sid, "undo", files=True)
    assert files(folder) == {}
    do(app, sid, "redo", files=True)
    assert files(folder) == {"a.txt": "first"}
    do(app, sid, "redo", files=True)
    assert files(folder) == {"a.txt": "second", "b.txt": "new", "c.txt": "by hand, since"}
    assert texts(app, sid)[-1] == "wrote a.txtwrote b.txt"


def test_without_files_the_workspace_stays(app: App) -> None:
    sid = app.session()
    say(app, sid, "write a.txt first")
    do(app, sid, "undo")
    assert files(Path(state(app, sid)["cwd"])) == {"a.txt": "first"}
    do(app, sid, "redo", files=True)
    assert files(Path(state(app, sid)["cwd"])) == {"a.txt": "first"}


def test_retry_with_files_runs_again_on_the_files_of_before(app: App) -> None:
    sid = app.session()
    say(app, sid, "write a.txt first")
    say(app, sid, "read a.txt\nwrite a.txt second")
    do(app, sid, "retry", run=True, files=True)
    until(lambda: len(texts(app, sid)) == 4 and not state(app, sid)["running_turn"], "the retry")
    assert texts(app, sid)[-1] == "firstwrote a.txt"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "repo"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("ignored/\n")
    (folder / ".gitattributes").write_text("* text=auto eol=crlf\n")
    (folder / "tracked.txt").write_bytes(b"one\r\ntwo\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "ignored").mkdir()
    (folder / "ignored" / "big").write_text("stays")
    (folder / "tracked.txt").chmod(0o755)
    return folder


def test_a_repository_of_the_users_is_restored_and_its_own_git_never_touched(
    start: Callable[..., Server], repository: Path
) -> None:
    server = start(WORKSPACE_ROOTS=str(repository.parent))
    app = server.app()
    (repository / "uncommitted.txt").write_text("mine")
    (repository / "nested").mkdir()
    git(repository / "nested", "init", "-q")
    (repository / "nested" / "n.txt").write_text("theirs")
    before = files(repository)
    mine = {path: path.read_bytes() for path in files_below(repository / ".git")}
    sid = app.session(cwd=str(repository))
    say(app, sid, "write tracked.txt changed\nwrite uncommitted.txt changed\nwrite ignored/big changed")
    (repository / "tracked.txt").chmod(0o644)
    do(app, sid, "undo", files=True)
    assert files(repository) == {**before, "ignored/big": "changed"}, "what is ignored is left alone"
    assert (repository / "tracked.txt").read_bytes() == b"one\r\ntwo\n", "byte for byte"
    assert (repository / "tracked.txt").stat().st_mode & 0o777 == 0o755
    assert {path: path.read_bytes() for path in files_below(repository / ".git")} == mine
    do(app, sid, "redo", files=True)
    assert (repository / "uncommitted.txt").read_text() == "changed"


def test_where_it_cannot_be_done_it_says_so_and_does_nothing(
    start: Callable[..., Server], tmp_path: Path
) -> None:
    plain = tmp_path / "work" / "plain"
    plain.mkdir(parents=True)
    server = start(WORKSPACE_ROOTS=str(plain.parent))
    app = server.app()
    sid = app.session(cwd=str(plain))
    say(app, sid, "write a.txt first")
    reply = post(app, sid, "undo", files=True)
    assert (reply.status_code, reply.json()["code"]) == (501, "unsupported")
    assert "git repository" in reply.json()["error"]
    assert texts(app, sid) == ["write a.txt first", "wrote a.txt"]
    imported = app.http.post(
        "/sessions/import", json={"messages": [{"role": "user", "content": "hi"}]}
    ).json()
    reply = post(app, imported["session_id"], "undo", files=True)
    assert "were not recorded" in reply.json()["error"]


def test_a_fork_knows_the_files_of_its_past(app: App) -> None:
    sid = app.session()
    say(app, sid, "write a.txt first")
    other = do(app, sid, "fork")["session_id"]
    say(app, other, "write a.txt second")
    do(app, other, "undo", files=True)
    assert files(Path(state(app, sid)["cwd"])) == {"a.txt": "first"}


def test_who_works_in_the_same_folder_is_held_while_it_is_put_back(app: App) -> None:
    """Its agent could swap what is being put back for a link."""
    sid = app.session()
    say(app, sid, "write a.txt first")
    other = do(app, sid, "fork")["session_id"]
    begin(app, other)
    refused = post(app, sid, "undo", files=True)
    assert (refused.status_code, refused.json()["code"]) == (409, "session_busy")
    assert f"session {other} is at work in the same folder" in refused.json()["error"]
    assert files(Path(state(app, sid)["cwd"])) == {"a.txt": "first"}
    assert texts(app, sid) == ["write a.txt first", "wrote a.txt"]
    app.http.post(f"/sessions/{other}/cancel")
    until(lambda: not state(app, other)["running_turn"], "the end of the other's turn")

    def started() -> str:
        return say(app, other, "read /proc/self/stat").rpartition(")")[2].split()[19]

    began = started()
    assert started() == began
    do(app, sid, "undo", files=True)
    assert files(Path(state(app, sid)["cwd"])) == {}
    assert started() != began, "its agent lived on while the files were put back"


def test_a_restore_that_a_crash_cut_off_is_finished_before_the_agent_works(
    start: Callable[..., Server],
) -> None:
    server = start()
    app = server.app()
    sid = app.session()
    folder = Path(state(app, sid)["cwd"])
    say(app, sid, "write a.txt first")
    say(app, sid, "write a.txt second")
    do(app, sid, "undo", files=True)
    do(app, sid, "redo", files=True)
    tree = (server.data_dir / "shadows" / sid / "refs" / "turns" / "1").read_text().strip()
    server.stop()
    server.sql("UPDATE sessions SET files_plan = ? WHERE session_id = ?", tree, sid)
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    assert say(app, sid, "read a.txt") == "first"
    assert files(folder) == {"a.txt": "first"}
