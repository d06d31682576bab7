"""What takes long says how far it is: to a person at a terminal, and to nobody else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.kit import Cli

pytestmark = pytest.mark.slow


def words(cli: Cli, folder: Path) -> dict[str, tuple[str, ...]]:
    """Every command that may take long; `import` and `restore` read what the others wrote."""
    session = cli.json("-p", "--output-format", "json", "echo hello")["session_id"]
    return {
        "exporting": ("sessions", "export", session, "-o", str(folder / "session.json")),
        "importing": ("sessions", "import", str(folder / "session.json")),
        "backing up": ("backup", str(folder / "all.tar.gz")),
        "restoring": ("restore", str(folder / "all.tar.gz"), "--data-dir", str(folder / "restored")),
    }


def test_a_bar_on_a_terminal_that_is_gone_at_the_end(cli: Cli, tmp_path: Path) -> None:
    for what, command in words(cli, tmp_path).items():
        terminal = cli.terminal(*command)
        assert terminal.wait() == 0, terminal.text
        assert what in terminal.raw, command
        assert what not in terminal.text, command
        assert terminal.text, command
    assert " of " in terminal.raw, "a restore knows the whole"


def test_nothing_of_it_in_a_pipe_or_when_told_to_be_quiet(cli: Cli, tmp_path: Path) -> None:
    for what, command in words(cli, tmp_path).items():
        done = cli(*command)
        assert what not in done.stdout + done.stderr
        assert "\x1b" not in done.stdout + done.stderr
    terminal = cli.terminal("sessions", "import", str(tmp_path / "session.json"), "--quiet")
    assert terminal.wait() == 0
    assert "importing" not in terminal.raw


def test_what_is_refused_leaves_a_message_and_no_bar(
    cli: Cli, make: Callable[..., Cli], tmp_path: Path
) -> None:
    terminal = cli.terminal("restore", str(Path(__file__)), "--data-dir", str(tmp_path / "new"))
    assert terminal.wait() == 1
    assert "is not a complete backup" in terminal.text
    assert "restoring" not in terminal.text
    assert not (tmp_path / "new").exists()
    empty = make(tmp_path / "empty").terminal("backup", str(tmp_path / "x.tar"))
    assert empty.wait() == 1
    assert "has no database" in empty.text.replace("\n", "")  # which a terminal may break anywhere
