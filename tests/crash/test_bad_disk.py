"""A start on a disk that is full or cannot be written is refused in a sentence, without a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SERVE = """
import resource, sys
from clawdforge.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv = ["clawdforge", "serve", "--port", "0", "--data-dir", sys.argv[2]]
main()
"""


def start(limit: int, folder: Path) -> str:
    arguments = [sys.executable, "-c", SERVE, str(limit), str(folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr


def check(said: str) -> None:
    assert "Traceback" not in said
    assert "clawdforge: " in said
    assert "--data-dir" in said


@pytest.mark.parametrize("limit", [0, 10_000, 100_000])
def test_a_full_disk(tmp_path: Path, limit: int) -> None:
    """No file may grow beyond this: the lock, the database's first page, its schema."""
    check(start(limit, tmp_path / "data"))


def test_a_folder_where_nothing_can_be_made() -> None:
    check(start(-1, Path("/proc/clawdforge")))
