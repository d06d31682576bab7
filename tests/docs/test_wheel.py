"""The wheel ships the package and nothing else, and is enough for a first answer without the source."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.try_wheel import NOT_TRIED, PACKAGE, complaints
from tests.needs import REQUIRE

TOP = Path(__file__).parents[2]


def pack(wheel: Path, extra: dict[str, str], *, without: str = "") -> Path:
    """A wheel of this source tree with something planted in it, or without one of its files."""
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in PACKAGE.rglob("*"):
            name = path.relative_to(PACKAGE.parent).as_posix()
            if path.is_file() and name != without:
                archive.write(path, name)
        for name, text in extra.items():
            archive.writestr(name, text)
    return wheel


def test_nothing_is_said_against_the_package_itself(tmp_path: Path) -> None:
    wheel = pack(tmp_path / "x.whl", {"clawdforge-0.0.dist-info/METADATA": "Name: clawdforge"})
    assert list(complaints(wheel)) == []


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        ({"tests/test_x.py": ""}, "tests/test_x.py is no part of the package"),
        ({"clawdforge/x.py": "import pytest"}, "clawdforge/x.py imports pytest"),
        ({"clawdforge/x.py": "from tests.support import x"}, "clawdforge/x.py imports tests"),
    ],
)
def test_what_does_not_belong_in_it_is_found(tmp_path: Path, extra: dict[str, str], complaint: str) -> None:
    found = list(complaints(pack(tmp_path / "x.whl", extra)))
    assert any(complaint in line for line in found), found


@pytest.mark.parametrize("name", ["clawdforge/py.typed", "clawdforge/drivers/registry/agents.toml"])
def test_a_file_that_is_missing_in_it_is_found(tmp_path: Path, name: str) -> None:
    assert list(complaints(pack(tmp_path / "x.whl", {}, without=name))) == [f"{name} is missing"]


@pytest.mark.slow
@pytest.mark.timeout(300)  # half a minute on a quiet machine, most of it pip's; bounded for a busy one
def test_the_wheel_alone_answers(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, "scripts/try_wheel.py", tmp_path]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode == NOT_TRIED and "registry" not in os.environ.get(REQUIRE, "").split():
        pytest.skip("the registry of packages cannot be reached, so the wheel cannot be installed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Hello!" in done.stdout
    assert len(list(tmp_path.glob("clawdforge-*.whl"))) == 1
