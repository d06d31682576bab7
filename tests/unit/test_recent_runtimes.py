"""What a program needs is looked up once for a crowd of starts, and again when something else is asked."""

from pathlib import Path

import pytest

from clawdforge.drivers.processes import recent_runtimes
from clawdforge.drivers.processes.mounts import Mount
from clawdforge.drivers.processes.recent_runtimes import RecentRuntimes
from clawdforge.drivers.processes.runtimes import Finder, Needs

NOTHING: frozenset[str] = frozenset()


class Walks:
    """How often there was a walk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        walk = Finder.add_needs

        def add_needs(finder: Finder, needs: Needs, env: dict[str, str]) -> None:
            self.count += 1
            walk(finder, needs, env)

        monkeypatch.setattr(Finder, "add_needs", add_needs)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> Walks:
    return Walks(monkeypatch)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "tools" / "agent.py"
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0o755)
    return path


def session(data: Path, name: str) -> tuple[Path, Path]:
    return data / "homes" / name, data / "workspaces" / name


def test_sessions_of_a_kind_share_a_walk(tmp_path: Path, program: Path, walks: Walks) -> None:
    recent, needs = RecentRuntimes(tmp_path / "data"), Needs(((str(program),),))
    found = [recent.find(needs, {}, session(tmp_path / "data", name), NOTHING) for name in "abc"]
    assert found[0] == found[1] == found[2]
    assert found[0][0] == (Mount(program.parent, "read-only", "the agent's program"),)
    assert walks.count == 1


def test_another_question_is_another_walk(tmp_path: Path, program: Path, walks: Walks) -> None:
    data, tools = tmp_path / "data", str(program.parent)
    recent, needs, own = RecentRuntimes(data), Needs(((str(program),),)), session(data, "a")
    assert recent.find(needs, {}, own, NOTHING)[1] == ()
    assert recent.find(needs, {}, own, frozenset({tools}))[1] == (program.parent,)
    assert recent.find(needs, {}, (own[0], program.parent), NOTHING)[0] == ()
    recent.find(needs, {"PATH": tools}, own, NOTHING)
    assert recent.find(Needs(readable=(tools,)), {}, own, NOTHING)[0] != ()
    assert walks.count == 5


def test_what_was_installed_meanwhile_is_found(
    tmp_path: Path, program: Path, walks: Walks, monkeypatch: pytest.MonkeyPatch
) -> None:
    recent, needs = RecentRuntimes(tmp_path / "data"), Needs(((str(program),),))
    monkeypatch.setattr(recent_runtimes, "MOMENT_SECS", -1.0)
    program.rename(program.with_name("later.py"))
    assert recent.find(needs, {}, (), NOTHING)[0] == ()
    program.with_name("later.py").rename(program)
    assert recent.find(needs, {}, (), NOTHING)[0] != ()
    assert walks.count == 2
