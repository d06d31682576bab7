"""Windows that are pulled narrower in mid-answer, and two terminals on one session."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.api.harness import Server, until
from tests.cli.kit import Cli
from tests.cli.terminal import CTRL_C

pytestmark = pytest.mark.slow
WORDS = " ".join(f"word{number:02}" for number in range(24))


def test_a_terminal_that_breaks_nothing_shows_the_words_once(
    server: Server, make: Callable[..., Cli]
) -> None:
    """xterm leaves its rows as they are."""
    terminal = make(server.data_dir, XTERM_VERSION="XTerm(390)").talk()
    terminal.send(f"echo {WORDS}\\")
    terminal.send("sleep 600")
    terminal.expect(r"word23\s*\n>$")
    terminal.resize(50, terminal.rows)
    terminal.expect(r"word13\n(word\d\d ?){7}\nword21 word22 word23\s*\n>$")
    terminal.type(CTRL_C)
    terminal.expect("cancelled;")
    shown = terminal.text.partition("sleep 600")[2]
    assert re.findall(r"word\d\d", shown) == WORDS.split()


def test_two_terminals_show_who_typed(cli: Cli) -> None:
    first = cli.talk()
    first.send("echo begun")
    first.expect("begun.*out")
    second = cli.talk("-c")
    second.send("echo told there")
    first.expect("> echo told there\n  from another terminal or program\ntold there")
    second.expect("told there.*out")
    assert "from another" not in second.text


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A terminal that breaks its rows anew, as most do; skipped where there is none."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("tmux is not installed; it stands for terminals that break rows anew")

    def run(*words: str) -> str:
        command = [program, "-S", str(tmp_path / "tmux"), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout

    yield run
    subprocess.run([program, "-S", str(tmp_path / "tmux"), "kill-server"], check=False, capture_output=True)


def test_a_terminal_that_breaks_its_rows_anew_shows_the_words_once(
    cli: Cli, tmux: Callable[..., str]
) -> None:
    env = [f"{name}={value}" for name, value in cli.env.items() if name not in ("STY", "XTERM_VERSION")]
    size = ("-x", "100", "-y", "30")
    tmux("new-session", "-d", *size, "-c", str(cli.project), "env", *env, sys.executable, "-m", "clawdforge")

    def shown() -> str:
        return tmux("capture-pane", "-p", "-J", "-S", "-200")

    until(lambda: re.search(r"^>", shown(), re.MULTILINE), "the line")
    tmux("send-keys", "-l", f"echo {WORDS}")
    tmux("send-keys", "Escape", "Enter")
    tmux("send-keys", "-l", "sleep 600")
    tmux("send-keys", "Enter")
    until(lambda: shown().count("word23") == 2, "the answer")
    for columns in ("60", "45"):
        tmux("resize-window", "-x", columns, "-y", "30")
        until(lambda: is_whole(shown()), f"the words at {columns} columns")


def is_whole(shown: str) -> bool:
    """Once where they were typed, once in the answer."""
    return re.findall(r"word\d\d", re.sub(r"(?<=\w)\n  (?=\w)", "", shown)) == WORDS.split() * 2
