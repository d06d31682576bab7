"""Every screen of the conversation as golden text, at three sizes: `./scripts/golden` rewrites them."""

import difflib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.api.harness import Server
from tests.cli.kit import environment
from tests.cli.terminal import CTRL_C, CTRL_D, CTRL_R, DOWN, ENTER, Terminal

pytestmark = pytest.mark.slow

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "screens"
UPDATES: Final = bool(os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN"))
SIZES: Final = ((80, 24), (200, 50), (40, 20))
QUIET_SECS: Final = 1.0
"""So long a screen stays the same before it is written down."""

PROSE = "echo The quick brown fox jumps over the lazy dog, again and again, until both are tired of it."
CODE = "```python\\\ndef greet(name):\\\n    return f'Hello, {name}!'\\\n```"
OUTPUT = (
    '{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "pytest -q", "status": "completed", '
    '"content": [{"type": "content", "content": {"type": "text", '
    '"text": "one\\ntwo\\nthree\\nfour\\nmore"}}]}'
)
PASTE = "\n".join(f"line {number}" for number in range(1, 31))

STEPS: Final = (
    ("greeting", ""),
    ("help", "/help" + ENTER),
    ("answer", f"{PROSE}{ENTER}"),
    ("code", CODE.replace("\\\n", "\\\r") + ENTER),
    ("tool", f"update {OUTPUT}{ENTER}"),
    ("whole output", "\x0f"),
    ("plan", f"plan read|think|write{ENTER}"),
    ("question", f"ask Delete the folder execute{ENTER}"),
    ("choice", DOWN + DOWN),
    ("decision", ENTER),
    ("streaming", "chunks 30 8\\\rsleep 600" + ENTER),
    ("queue", f"echo later{ENTER}"),
    ("stopped", CTRL_C),
    ("failure", f"error no credit left{ENTER}"),
    ("refusal", f"refuse{ENTER}"),
    ("paste", f"\x1b[200~{PASTE}\x1b[201~"),
    ("cleared", CTRL_C),
    ("completion", "/re"),
    ("cleared again", CTRL_C),
    ("search", CTRL_R + "lazy"),
    ("search left", CTRL_C),
    ("misspelt", f"/modle{ENTER}"),
    ("shell", f"!echo from the shell; exit 3{ENTER}"),
    ("permissions", f"/permissions{ENTER}"),
    ("left", CTRL_D),
)


def look(terminal: Terminal, folder: str) -> str:
    """The last rows as a person sees them, without what is different each time.

    What stands for that is of the same width, so that lines break where they did. How many rows are empty
    between the line and the bar depends on what was drawn at once, and so on the machine.
    """
    text = re.sub(r"\n{3,}", "\n\n", terminal.text)
    text = re.sub(r"^(>.*\n)\n+", r"\1", text, flags=re.MULTILINE)
    text = "\n".join(text.split("\n")[-terminal.rows :])
    text = text.replace(folder, "/tmp/" + "p" * (len(folder) - len("/tmp/")))
    text = re.sub(r"\b[0-9a-f]{8}\b", "01234567", text)
    text = re.sub(r"\d+\.\d s$", "0.0 s", text, flags=re.MULTILINE)
    return re.sub(r"\S working \d+ s", "◐ working 0 s", text)


def wait_until_quiet(terminal: Terminal, folder: str) -> str:
    """What the screen shows once it has stopped changing; only for writing it down."""
    seen, since = "", time.monotonic()
    while time.monotonic() - since < QUIET_SECS:
        terminal.read(0.1)
        now = look(terminal, folder)
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


def wait_for(terminal: Terminal, folder: str, wanted: str, name: str) -> None:
    end = time.monotonic() + 30
    while look(terminal, folder) != wanted:
        if time.monotonic() > end:
            found = look(terminal, folder).splitlines()
            pytest.fail(f"{name}:\n" + "\n".join(difflib.unified_diff(wanted.splitlines(), found, n=50)))
        terminal.read(0.1)


def read_golden(path: Path) -> dict[str, str]:
    parts = re.split(r"^=== (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A project whose path is as long as the last one's: it is on the screen."""
    with tempfile.TemporaryDirectory(prefix="cf-", dir="/tmp") as name:
        yield Path(name)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_every_screen(server: Server, home: Path, folder: Path, size: tuple[int, int]) -> None:
    path = GOLDEN / f"{size[0]}x{size[1]}.txt"
    env = environment(server.data_dir, home, EDITOR="false")
    terminal = Terminal(env=env, cwd=folder, tells=True, size=size)
    (server.data_dir / "repl_history").unlink(missing_ok=True)  # of other tests
    seen: dict[str, str] = {}
    wanted = {} if UPDATES else read_golden(path)
    try:
        for name, keys in STEPS:
            terminal.type(keys)
            if UPDATES:
                terminal.expect("(?m)^>")
                seen[name] = wait_until_quiet(terminal, str(folder))
            else:
                wait_for(terminal, str(folder), wanted[name], name)
    finally:
        terminal.close()
    if UPDATES:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"=== {name}\n{text}\n" for name, text in seen.items()), encoding="utf-8")
    else:
        assert list(wanted) == [name for name, _ in STEPS]
