"""The repository of a git worktree is shown to its agent, and nothing else that a file of its names."""

import subprocess
from pathlib import Path

import pytest

from clawdforge.core.models.agents import AgentSpec, Launch
from clawdforge.drivers.folders.writable import find_writable
from clawdforge.drivers.processes.worktrees import find_repository


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (
        ["init", "-q", "main"],
        ["-C", "main", "commit", "-q", "--allow-empty", "-m", "first"],
        ["-C", "main", "worktree", "add", "-q", "../side"],
    ):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    return tmp_path / "side"


def test_a_real_worktree(worktree: Path) -> None:
    assert find_repository(worktree) == (worktree.parent / "main" / ".git",)
    assert find_repository(worktree.parent / "main") == ()
    assert find_repository(worktree.parent) == ()


def test_a_worktree_whose_paths_are_relative(worktree: Path) -> None:
    """As git writes them with `worktree.useRelativePaths`."""
    repository = worktree.parent / "main" / ".git"
    (worktree / ".git").write_text("gitdir: ../main/.git/worktrees/side\n")
    assert find_repository(worktree) == (repository,), "only one of them may be"
    (repository / "worktrees" / "side" / "gitdir").write_text("../../../../side/.git\n")
    assert find_repository(worktree) == (repository,)
    (repository / "worktrees" / "side" / "gitdir").write_text("../../../../other/.git\n")
    assert find_repository(worktree) == ()


@pytest.mark.parametrize("trick", ["elsewhere", "forged", "commondir", "link", "relative", "not mutual"])
def test_an_agent_cannot_name_a_folder_of_its_choice(worktree: Path, trick: str) -> None:
    secret = worktree.parent / "secret"
    (secret / "worktrees" / "x").mkdir(parents=True)
    (secret / "objects").mkdir()
    (secret / "HEAD").write_text("")
    inside = worktree / "repo" / "worktrees" / "x"
    inside.mkdir(parents=True)
    (inside / "gitdir").write_text(f"{worktree}/.git\n")
    (worktree / "repo" / "objects").mkdir()
    (worktree / "repo" / "HEAD").write_text("")
    pointer = worktree / ".git"
    pointer.unlink()
    if trick == "elsewhere":
        pointer.write_text(f"gitdir: {secret}\n")
    elif trick == "forged":
        (inside.parent / "y").symlink_to(secret / "worktrees" / "x")
        pointer.write_text(f"gitdir: {inside.parent / 'y'}\n")
    elif trick == "commondir":
        (inside / "commondir").write_text(f"{secret}\n")
        pointer.write_text(f"gitdir: {inside}\n")
        assert find_repository(worktree) == (worktree / "repo",)  # its own folder, and no other
        return
    elif trick == "link":
        (secret / "pointer").write_text(f"gitdir: {inside}\n")
        pointer.symlink_to(secret / "pointer")
    elif trick == "relative":
        pointer.write_text("gitdir: ../secret/worktrees/x\n")
    else:
        pointer.write_text(f"gitdir: {secret}/worktrees/x\n")
    assert find_repository(worktree) == ()


@pytest.mark.parametrize("app", ["local", "other"])
def test_only_the_operators_own_app_may_write_to_the_repository(
    worktree: Path, tmp_path: Path, app: str
) -> None:
    """Another app was granted the worktree, and not what it belongs to."""
    spec = AgentSpec(name="a", driver="acp", command=("a",))
    launch = Launch(app=app, session_id="s", agent=spec, cwd=worktree, home=tmp_path / "home")
    repository = worktree.parent / "main" / ".git"
    assert find_writable(launch) == ((repository,) if app == "local" else ())
