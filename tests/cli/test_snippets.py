"""The shell commands in the pages: each has the options that it is given, and most are run as they stand."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from clawdforge.cli import main
from tests.api.harness import Server
from tests.cli.kit import environment
from tests.needs import needs

TOP: Final = Path(__file__).parents[2]
PAGES: Final = ("README.md", *(str(path.relative_to(TOP)) for path in (TOP / "docs").rglob("*.md")))
PORT: Final = "localhost:8800"
RUN: Final = {
    ("README.md", 2): "event: turn.ended",
    ("docs/start/quickstart.md", 3): "event: turn.ended",
    ("docs/start/quickstart.md", 4): "id: 4",
    ("docs/start/quickstart.md", 5): "cf_",
    ("docs/guides/terminal.md", 4): '"type": "result"',
    ("docs/guides/terminal.md", 5): "next step",
    ("docs/guides/budgets.md", 1): "20.0M",
    ("docs/guides/schedules.md", 1): "0 9 * * MON-FRI Europe/Berlin",
}
"""What is run, and what it prints among other things. `ID` and `TOKEN` are those of the block before."""

LEFT: Final = {
    ("README.md", 1): "the wheel's test installs it, a terminal's tests converse",
    ("README.md", 3): "opens a browser; test_open.py",
    ("README.md", 4): "begins with a conversation; test_repl.py",
    ("docs/start/quickstart.md", 1): "the wheel's test installs it and asks the same",
    ("docs/start/quickstart.md", 6): "installs an agent of others",
    ("docs/guides/terminal.md", 1): "a conversation; test_repl.py",
    ("docs/guides/terminal.md", 2): "conversations; test_repl.py",
    ("docs/guides/terminal.md", 3): "installs an agent of others; test_setup.py",
    ("docs/guides/terminal.md", 6): "stops the server; test_server.py",
    ("docs/guides/terminal.md", 7): "another machine",
    ("docs/guides/budgets.md", 2): "somebody's session",
    ("docs/reference/dialects.md", 1): "files of hermes; tests/api/test_hermes_import.py",
}
"""What is not run, and why not."""

ENDLESS: Final = re.compile(r"(?:[A-Z_]+=\S+ )*(?:clawdforge |\./scripts/)serve\n")
"""A server that goes on until it is stopped; the tests start hundreds."""


COMMAND: Final = re.compile(r"(?:^|[|(] *|^[A-Z_]+=\S* )clawdforge\b([^|)#\n]*)", re.MULTILINE)


def blocks() -> dict[tuple[str, int], str]:
    return {
        (page, number): text
        for page in PAGES
        for number, text in enumerate(
            re.findall(r"^```sh\n(.*?)^```$", (TOP / page).read_text(), re.DOTALL | re.MULTILINE), 1
        )
    }


def commands(text: str) -> list[list[str]]:
    """The words after each `clawdforge` that begins a command, also behind a pipe or in `$(…)`."""
    return [shlex.split(words) for words in COMMAND.findall(text)]


def test_every_block_is_run_or_has_a_reason() -> None:
    found = [place for place, text in blocks().items() if not ENDLESS.fullmatch(text)]
    assert sorted(found) == sorted([*RUN, *LEFT]), "add it to RUN, or to LEFT with the reason"


def test_every_command_in_the_pages_has_these_options() -> None:
    seen = 0
    for (page, _), text in blocks().items():
        for words in commands(text):
            seen += 1
            try:
                parse(main, words)
            except click.exceptions.Exit:
                pass
            except click.ClickException as error:
                pytest.fail(f"{page}: clawdforge {shlex.join(words)}: {error.format_message()}")
    assert seen > 20


def parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """Read the words as the command would, down to the last of its commands, and run nothing."""
    context = command.make_context(command.name or "clawdforge", [*words], parent=parent)
    if isinstance(command, click.Group) and context._protected_args + context.args:
        name, inner, rest = command.resolve_command(context, context._protected_args + context.args)
        assert inner is not None, name
        parse(inner, rest, context)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server where a person has it, and that person's environment."""
    home = tmp_path_factory.mktemp("snippets")
    data = home / ".local" / "share" / "clawdforge"
    data.parent.mkdir(parents=True)
    server = Server(data, {"CLAWDFORGE_DEFAULT_AGENT": "demo"})
    env = environment(data, home, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield server, env
    server.stop()


@pytest.mark.slow
@needs("curl")
def test_the_blocks_do_what_they_say(machine: tuple[Server, dict[str, str]], tmp_path: Path) -> None:
    server, env = machine
    found = blocks()
    script = ["set -eu", "clawdforge token create shop >/dev/null"]
    for (page, number), words in RUN.items():
        text = found[page, number].replace(PORT, server.url.removeprefix("http://"))
        text = text.replace("this may take long", "/sleep 60")  # until it is stopped
        lines = [line for line in text.splitlines() if "tail -f" not in line]  # never ends
        if "Last-Event-ID" in text:
            lines[-1] += " | head -n 20"  # it follows the session for ever
        script += [f"echo '=== {page} {number}'", *lines]
        assert words
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    done = subprocess.run(
        ["sh", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(zip(RUN, re.split(r"^=== .*\n", done.stdout, flags=re.MULTILINE)[1:], strict=True))
    missing = {place: said[place] for place, words in RUN.items() if words not in said[place]}
    assert missing == {}, done.stderr
