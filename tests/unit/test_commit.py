"""The commit in `--version`: of a checkout, of a second work tree, of a package, and of neither."""

import subprocess
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from clawdforge.cli.commit import FILE, find_commit

TOP = Path(__file__).parents[2]


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "src" / "clawdforge").mkdir(parents=True)
    (top / "src" / "clawdforge" / "__init__.py").write_text("")
    git(top, "init", "--quiet")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "--message", "one")
    return top


def test_a_checkout_knows_its_commit_however_git_keeps_it(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")[:12]
    package = checkout / "src" / "clawdforge"
    assert find_commit(package) == commit
    git(checkout, "pack-refs", "--all")
    assert find_commit(package) == commit
    git(checkout, "worktree", "add", "--quiet", "-b", "other", "../second")
    assert find_commit(checkout.parent / "second" / "src" / "clawdforge") == commit
    git(checkout, "checkout", "--quiet", "--detach")
    assert find_commit(package) == commit


def test_a_repository_around_an_installed_package_is_not_its_own(checkout: Path) -> None:
    package = checkout / "site-packages" / "clawdforge"
    package.mkdir(parents=True)
    assert find_commit(package) is None
    (package / FILE).write_text("0123456789ab\n")
    assert find_commit(package) == "0123456789ab"


def test_a_repository_without_a_commit_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "src" / "clawdforge").mkdir(parents=True)
    git(tmp_path, "init", "--quiet")
    assert find_commit(tmp_path / "src" / "clawdforge") is None


def test_a_wheel_has_the_commit_that_it_was_built_from(tmp_path: Path, checkout: Path) -> None:
    (checkout / "scripts").mkdir()
    (checkout / "scripts" / "build_commit.py").write_text((TOP / "scripts" / "build_commit.py").read_text())
    (checkout / "pyproject.toml").write_text(
        '[project]\nname = "clawdforge"\nversion = "1"\n'
        '[tool.hatch.build.hooks.custom]\npath = "scripts/build_commit.py"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["src/clawdforge"]\n'
    )
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "two")
    [wheel] = WheelBuilder(str(checkout)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"clawdforge/{FILE}").decode().strip() == git(checkout, "rev-parse", "HEAD")[:12]
