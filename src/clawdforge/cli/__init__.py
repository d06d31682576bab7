"""The command line, a client of the server. The module of a command is imported when it is called."""

from typing import Any, Final

import click

from clawdforge import __version__
from clawdforge.cli.lazy import Later, Program
from clawdforge.cli.target.options import target_options

CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

COMMANDS: Final = {
    "agents": Later(
        "catalog:agents", "List the agents that can be run, and how to install those that are not there."
    ),
    "app": Later("operator:app", "List apps and set what they may use."),
    "approve": Later(
        "permissions:approve", "Allow what the agent asks: REQUEST, or the only one that waits."
    ),
    "audit": Later("operator:audit", "Check the ledger of what happened."),
    "backup": Later(
        "upkeep:backup", "Write a consistent copy of the data folder to FILE, also while a server runs."
    ),
    "chat": Later("chat:chat", "Talk to an agent in the terminal, or print one answer with -p."),
    "completion": Later("completion:completion", "Print the completion script of a shell."),
    "config": Later("config:config", "Show the settings."),
    "deny": Later("permissions:deny", "Refuse what the agent asks: REQUEST, or the only one that waits."),
    "doctor": Later("upkeep:doctor", "Look at the data folder and at this machine."),
    "open": Later("catalog:open_", "Print the server's address, and how to log in there."),
    "personas": Later(
        "catalog:personas",
        "List the personas: named agents with a model, a permission mode and instructions.",
    ),
    "redo": Later("history:redo", "Bring back what the last undo took."),
    "restore": Later(
        "upkeep:restore", "Put a backup into the data folder, which must be empty or not there."
    ),
    "retry": Later("history:retry", "Take back the last turn and send its prompt again; print the answer."),
    "run": Later("turns:run", "One prompt, one answer of `claude -p`, no session."),
    "send": Later("turns:send", "Send a prompt to a session and print the answer."),
    "serve": Later("serve:serve", "Run the server."),
    "sessions": Later("sessions:sessions", "List, read and manage sessions."),
    "stop": Later("turns:stop", "Stop the running turn."),
    "tail": Later(
        "tail:tail", "Show what happened in a session: its last turn, or everything after an event."
    ),
    "token": Later("tokens:token", "Make, list and revoke credentials for apps."),
    "undo": Later("history:undo", "Take back the last turn, in the transcript and in the agent's memory."),
    "usage": Later(
        "catalog:usage", "Show tokens and cost of a session; without ID, of every app (for operators)."
    ),
}


@click.group(cls=Program, lazy=COMMANDS, context_settings=CONTEXT)
@click.version_option(__version__, "-V", "--version", prog_name="clawdforge", message="%(prog)s %(version)s")
@target_options
def main() -> None:
    """Durable sessions with AI agents.

    Without a command's name it is a conversation in the terminal: `clawdforge`, `clawdforge -c` to continue
    the last one here, `clawdforge -p "prompt"` for one answer. `clawdforge chat --help` shows the options.

    Commands talk to the server on the data folder, and start one in the background if there is none; or to
    the one that --server names, with the token in CLAWDFORGE_TOKEN.
    """


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)
