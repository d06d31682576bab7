"""The reference of the command line says what the commands say, and the guide names commands that exist."""

import os
import re

from clawdforge.cli import COMMANDS, main
from tests.docs.cli_page import commands, page
from tests.docs.render import REFERENCE

UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"
PAGE = REFERENCE / "cli.md"
GUIDE = REFERENCE.parent / "guides" / "terminal.md"
ASKED_FOR = {
    *[
        "chat",
        "serve",
        "run",
        "send",
        "tail",
        "stop",
        "approve",
        "deny",
        "undo",
        "redo",
        "retry",
        "usage",
        "agents",
        "personas",
        "open",
    ],
    *["backup", "restore", "doctor", "completion"],
    *("audit verify", "config show", "token create", "token list", "token revoke", "app list", "app limit"),
    *(
        f"sessions {name}"
        for name in [
            "list",
            "show",
            "resume",
            "end",
            "rename",
            "fork",
            "export",
            "import",
            "search",
            "delete",
        ]
    ),
}


def test_the_page_is_fresh() -> None:
    if UPDATE:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "run scripts/golden"


def test_every_command_that_was_promised_is_there() -> None:
    assert {" ".join(path) for path, _ in commands(main)} >= ASKED_FOR


def test_the_guide_names_real_commands() -> None:
    known = {path[0] for path, _ in commands(main) if path}
    named = re.findall(r"^(?:.*\| )?clawdforge ([a-z]+)", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert named
    assert set(named) <= known


def test_the_list_says_of_a_command_what_the_command_says_of_itself() -> None:
    """The list is made without the modules of the commands, so its sentences stand twice."""
    for name, command in COMMANDS.items():
        said = command.load().get_short_help_str(limit=200)
        assert said.startswith(command.about.rstrip(".")), name
