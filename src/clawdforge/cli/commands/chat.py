"""`clawdforge` itself: which session is meant, then one answer or a conversation in the terminal."""

import gc
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from clawdforge.by_name import load
from clawdforge.cli.commands.turn_limits import given_limits, limit_options
from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.output.answer import FORMATS, Printer, outcome_code
from clawdforge.cli.tables import session_lines
from clawdforge.cli.target import find_session
from clawdforge.cli.target.completing import complete_agent, complete_id, complete_persona
from clawdforge.cli.target.connect import connect, translate_errors
from clawdforge.cli.target.defaults import options_for_new_session
from clawdforge.cli.target.options import Endpoint, Target, target_options
from clawdforge.cli.target.project import project_folder
from clawdforge.client import Forge, ForgeError, Session

MODES: Final = ("approve_all", "approve_reads", "ask", "deny_all")
PICK: Final = "?"
"""What `-r` means without a value."""

REPL: Final = "clawdforge.cli.repl.start:converse"
PICKER: Final = "clawdforge.cli.output.picker:pick"
"""Both bring a terminal's libraries, which an answer with -p does without."""

RARELY: Final = 50_000
"""New objects between two looks for garbage. What -p imports after its start leaves next to none."""


class SessionChoice:
    """Finds or creates the session that the flags describe."""

    def __init__(self, target: Target, endpoint: Endpoint, folder: Path, flags: dict[str, Any]) -> None:
        self._target = target
        self._endpoint = endpoint
        self._folder = folder
        self._flags = flags

    def find_row(self) -> find_session.Row | None:
        """The existing session that is meant; None for a new one."""
        named = [name for name in ("session", "resume", "continue_") if self._flags[name]]
        if len(named) > 1:
            raise click.UsageError("choose one of --session, --resume and --continue")
        if not named:
            if self._flags["fork"]:
                raise click.UsageError("--fork needs a session: --continue, --resume or --session")
            return None
        if self._flags["session"]:
            return find_session.find_open(self._endpoint, self._flags["session"])
        if self._flags["continue_"]:
            return find_session.find_last(self._endpoint, self._folder)
        if self._flags["resume"] != PICK:
            return find_session.find_open(self._endpoint, self._flags["resume"])
        return self._pick()

    def _pick(self) -> find_session.Row:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise click.UsageError("--resume without an id needs a terminal; name the session")
        rows = find_session.list_recent(self._endpoint, self._folder, limit=50, state="active")
        if not rows:
            raise Failure("there is no open session in this project to resume", Exit.NOT_FOUND)
        found: find_session.Row = load(PICKER)(rows, session_lines(rows, colour=False))
        return found

    def open_session(self, forge: Forge, *, mode: str) -> Session:
        """The session, made if need be. Sessions of the command line are kept."""
        row = self.find_row()
        flags = {key: self._flags[key] for key in ("agent", "persona", "model", "permission_mode")}
        if row is None:
            made: dict[str, Any] = {"permission_mode": mode, **options_for_new_session(self._folder, flags)}
            cwd = self._folder if self._endpoint.is_local or self._flags["cwd"] else None
            return forge.create_session(title=self._flags["name"], cwd=cwd, retention="keep", **made)
        session = forge.handle(row)
        if self._flags["fork"]:
            session = session.fork(title=self._flags["name"])
        changes = {key: value for key, value in flags.items() if value and key != "persona"}
        if changes:
            session.patch(**changes)
        return session


@click.command()
@click.argument("words", metavar="[PROMPT]", nargs=-1)
@click.option("-p", "--print", "once", is_flag=True, help="Print one answer and exit.")
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="With -p: the text, one JSON object, or the events, one per line.",
)
@click.option(
    "-c", "--continue", "continue_", is_flag=True, help="Continue the last session of this project."
)
@click.option(
    "-r",
    "--resume",
    is_flag=False,
    flag_value=PICK,
    metavar="[ID]",
    shell_complete=complete_id,
    help="Continue this session; without ID, choose from a list.",
)
@click.option("-s", "--session", metavar="ID", shell_complete=complete_id, help="Use this session.")
@click.option("--fork", is_flag=True, help="Continue in a copy and leave the session itself unchanged.")
@click.option("-n", "--name", help="Title of the new session.")
@click.option(
    "-a", "--agent", shell_complete=complete_agent, help="Agent of the session.  [default: the server's]"
)
@click.option("--persona", shell_complete=complete_persona, help="Persona of the new session.")
@click.option("-m", "--model", help="Model of the agent.")
@click.option(
    "-C", "--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder to work in."
)
@click.option(
    "--permission-mode",
    type=click.Choice(MODES),
    help="What happens when the agent asks.  [default: ask; with -p approve_reads, and all else is refused]",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECS", help="With -p: time limit."
)
@limit_options
@target_options
@click.pass_obj
def chat(target: Target, /, words: tuple[str, ...], *, once: bool, output_format: str, **flags: Any) -> None:
    """Talk to an agent in the terminal, or print one answer with -p.

    Starts a new session of this project, unless -c, -r or -s says otherwise. The session is kept when you
    leave: continue it with `clawdforge -c`. With -p the prompt may also come on stdin.

    ID is a session's id, the first six or more characters of it, or its title.
    """
    prompt = " ".join(words)
    if once:
        print_answer(target, _read_prompt(prompt), output_format, flags)
        return
    if output_format != "text":
        raise click.UsageError("--output-format is for -p/--print")
    endpoint = target.reach()
    folder = flags["cwd"] or project_folder()
    with connect(target) as forge:
        row = SessionChoice(target, endpoint, folder, flags).open_session(forge, mode="ask").state()
    _converse(target, endpoint, row, prompt)


def print_answer(target: Target, prompt: str, form: str, flags: dict[str, Any]) -> None:
    gc.set_threshold(RARELY)
    endpoint = target.reach()
    folder = flags["cwd"] or project_folder()
    with connect(target) as forge:
        session = SessionChoice(target, endpoint, folder, flags).open_session(forge, mode="approve_reads")
        target.detail(f"session {session.session_id}")
        waits = flags["permission_mode"] == "ask"
        printer = Printer(target, session, form, waits=waits)
        try:
            result = printer.run_turn(prompt, timeout_secs=flags["timeout"], **given_limits(flags))
        finally:  # also when it was stopped, or its reader had seen enough
            with suppress(ForgeError):  # the agent then ends when it was idle for long
                session.let_agent_go()
    raise SystemExit(outcome_code(target, printer, result))


def _read_prompt(prompt: str) -> str:
    """The prompt, and what is piped in; `-` alone stands for the pipe."""
    piped = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    found = "\n\n".join(part for part in ("" if prompt == "-" else prompt, piped) if part)
    if not found:
        raise click.UsageError("no prompt; write it after -p or pipe it in")
    return found


def _converse(target: Target, endpoint: Endpoint, row: find_session.Row, prompt: str) -> None:
    with translate_errors():
        load(REPL)(target, endpoint, row, prompt)


@click.command()
@find_session.id_argument
@click.option("--reopen", is_flag=True, help="Open the session again if it has ended.")
@target_options
@click.pass_obj
def resume(target: Target, /, session: str, *, reopen: bool) -> None:
    """Continue a session in the terminal."""
    endpoint = target.reach()
    row = find_session.find(endpoint, session)
    if reopen and row["state"] == "ended":
        with connect(target) as forge:
            row = forge.handle(row).reopen()
    else:
        row = find_session.find_open(endpoint, row["session_id"])
    _converse(target, endpoint, row, "")
