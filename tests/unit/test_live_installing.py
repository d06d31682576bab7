"""Programs for the live suite: what was cut off half-way is installed again, and two at once install once."""

import os
import threading
from pathlib import Path

import pytest

from tests.live import installing
from tests.live.programs import Program

PROGRAM = Program("tool", "tool", npm=("tool",))
NPM = """#!/bin/sh
echo called >> {calls}
mkdir -p node_modules/.bin
cd node_modules/.bin
for name in node tool; do echo '#!/bin/sh' > $name; chmod +x $name; done
{then}
"""


def give_npm(folder: Path, then: str = "") -> Path:
    """An npm that writes its programs, and then does something else."""
    calls = folder / "calls"
    npm = folder / "npm"
    npm.write_text(NPM.format(calls=calls, then=then))
    npm.chmod(0o755)
    return calls


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(installing, "CACHE", tmp_path / "cache")
    return folder


def test_what_was_killed_half_way_is_not_taken_for_done(tools: Path) -> None:
    give_npm(tools, then="kill -9 $$")
    with pytest.raises(installing.Unavailable):
        installing.install(PROGRAM)
    assert not installing.present(PROGRAM)
    give_npm(tools)
    installing.install(PROGRAM)
    assert installing.present(PROGRAM)


def test_two_at_once_install_once(tools: Path) -> None:
    calls = give_npm(tools)
    both = [threading.Thread(target=installing.install, args=(PROGRAM,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert installing.present(PROGRAM)
    assert calls.read_text().split() == ["called", "called"]  # a Node, and the program
