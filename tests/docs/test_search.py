"""`scripts/search` tells what it found, also when its time is over before a round has come to its end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SEARCH = Path(__file__).parent.parent.parent / "scripts" / "search"
FAILS_FIRST = """
import threading
import pytest

def test_that_fails():
    assert False

@pytest.mark.parametrize("number", range(3000))
def test_that_takes_longer_than_the_search_with_all_the_others(number):
    threading.Event().wait(0.1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the real script, our own interpreter, and nothing to install."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SEARCH, tmp_path / "scripts" / "search")
    programs = {
        "scripts/bootstrap": "#!/bin/sh\n",
        ".venv/bin/python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    }
    for name, text in programs.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def search(project: Path, seconds: int, test: str) -> subprocess.CompletedProcess[str]:
    (project / "test_it.py").write_text(test)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        ["sh", "scripts/search", str(seconds), "test_it.py"],
        cwd=project,
        env=env,
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.timeout(240)
def test_a_failure_is_told_though_the_round_would_outlast_the_search(project: Path) -> None:
    done = search(project, 120, FAILS_FIRST)  # it ends with the failure; a busy machine takes its time
    assert done.returncode not in (0, 124), done.stdout
    assert "Found with seed" in done.stderr
    assert "test_that_fails" in done.stdout


def test_a_search_that_finds_nothing_ends_well(project: Path) -> None:
    done = search(project, 1, "def test_that_passes(): pass\n")
    assert done.returncode == 0, done.stderr
    assert "Nothing was found" in done.stdout
