"""Which files of a prompt are sent along with it."""

from pathlib import Path

import pytest

from clawdforge.cli.repl.attached import find_attached


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("project/shot.png", "project/Shot.JPG", "project/notes.txt", "home/list.txt", "home/a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "project" / "loop").symlink_to("loop")
    (tmp_path / "project" / "out.txt").symlink_to(tmp_path / "home" / "list.txt")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("what is on @shot.png", ["shot.png"]),
        ("look at @Shot.JPG, please", ["Shot.JPG"]),
        ("@shot.png @shot.png\n@~/a.png", ["shot.png", "a.png"]),
        ("read @notes.txt", []),  # the agent reads it where it is
        ("read @~/list.txt", ["list.txt"]),
        ("read @../home/list.txt.", ["list.txt"]),
        ("read @out.txt", ["list.txt"]),
        ("mail me@shot.png or @nobody.png, @loop, @, @~nobody/x.png", []),
        ("a folder: @../home", []),
        ("@" + "x" * 5000, []),
        ("a zero: @shot.png\0", []),
    ],
)
def test_pictures_and_what_is_elsewhere(folder: Path, prompt: str, names: list[str]) -> None:
    assert [path.name for path in find_attached(prompt, folder)] == names
