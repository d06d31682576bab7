"""The command line, a client of the server. The module of a command is imported when it is called."""

from typing import Any, Final

import click

from clawdforge import __version__
from clawdforge.cli.commit import find_commit
from clawdforge.cli.lazy import LazyCommand, Program
from clawdforge.cli.target.options import target_options

CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

COMMANDS: Final = {
    "mcp": LazyCommand(
        "mcp:mcp", "Be an MCP server on stdin and stdout, whose tools begin and lead sessions."
    ),
    "acp": LazyCommand(
        "acp:acp", "Be an ACP agent on stdin and stdout, for editors that speak the Agent Client Protocol."
    ),
    "agents": LazyCommand(
        "catalog:agents", "List the agents that can be run, and how to install those that are missing."
    ),
    "app": LazyCommand("operator:app", "List apps, set their limits and grant them folders."),
    "approve": LazyCommand(
        "permissions:approve", "Allow what the agent asks for: REQUEST, or the only one that is waiting."
    ),
    "archive": LazyCommand(
        "archive:archive", "Put old audit entries and run records into a file, and remove them."
    ),
    "audit": LazyCommand("operator:audit", "Check the audit log."),
    "backup": LazyCommand(
        "upkeep:backup", "Write a consistent copy of the data folder to FILE, also while a server runs."
    ),
    "budget": LazyCommand(
        "budgets:budget", "Set and remove budgets: what an app, a token or a session may spend."
    ),
    "budgets": LazyCommand("budgets:budgets", "Show what may be spent, and what is spent and left of it."),
    "chat": LazyCommand("chat:chat", "Talk to an agent in the terminal, or print one answer with -p."),
    "completion": LazyCommand("completion:completion", "Print the completion script of a shell."),
    "config": LazyCommand("config:config", "Show the settings."),
    "deny": LazyCommand(
        "permissions:deny", "Refuse what the agent asks for: REQUEST, or the only one that is waiting."
    ),
    "disk": LazyCommand(
        "disk:disk", "Show what every app stores; with APP, its forms and its largest sessions."
    ),
    "doctor": LazyCommand("upkeep:doctor", "Check the data folder and this machine for problems."),
    "drain": LazyCommand(
        "nodes:drain", "Have a server leave its work to the others that share its database."
    ),
    "migrate": LazyCommand("migrate:migrate", "Bring the tables up to date, as `serve` does at its start."),
    "open": LazyCommand(
        "browser:open_", "Open the server's page in the browser, logged in; with ID, at that session."
    ),
    "pause": LazyCommand(
        "pauses:pause", "Let no turn start until `resume`: on the whole server, of an app, or of an agent."
    ),
    "personas": LazyCommand(
        "catalog:personas",
        "List the personas: named agents with a model, a permission mode and instructions.",
    ),
    "redo": LazyCommand("history:redo", "Bring back what the last undo removed."),
    "restore": LazyCommand(
        "upkeep:restore", "Restore a backup into the data folder, which must be empty or missing."
    ),
    "resume": LazyCommand("pauses:resume", "End a pause, and start what waits there."),
    "retry": LazyCommand(
        "history:retry", "Take back the last turn and send its prompt again; print the answer."
    ),
    "run": LazyCommand("turns:run", "Run one prompt with `claude -p`, without a session."),
    "sandbox": LazyCommand("sandbox:sandbox", "Look at what agents see of this machine."),
    "schedules": LazyCommand(
        "schedules:schedules",
        "Have the server submit prompts by itself, by cron or once, and see what became of each time.",
    ),
    "send": LazyCommand("turns:send", "Send a prompt to a session and print the answer."),
    "serve": LazyCommand("serve:serve", "Run the server."),
    "server": LazyCommand(
        "server:server",
        "Look at the server on the data folder, stop it, or start it again with today's environment.",
    ),
    "sessions": LazyCommand("sessions:sessions", "List, read and manage sessions."),
    "setup": LazyCommand(
        "setup:setup",
        "Show which agents are here and what they need; install AGENT, try it, and say what to type next.",
    ),
    "stop": LazyCommand("turns:stop", "Stop the running turn."),
    "nodes": LazyCommand(
        "nodes:nodes", "Show the servers that share one database: which of them live, and what they run."
    ),
    "stuck": LazyCommand("operator:stuck", "Show sessions that stand still, and what they wait for."),
    "tail": LazyCommand(
        "tail:tail", "Show what happened in a session: its last turn, or everything after an event."
    ),
    "token": LazyCommand("tokens:token", "Make, list and revoke credentials for apps."),
    "undo": LazyCommand(
        "history:undo", "Take back the last turn, in the transcript and in the agent's memory."
    ),
    "usage": LazyCommand(
        "catalog:usage", "Show tokens and cost of a session; without ID, of every app (for operators)."
    ),
    "webhook": LazyCommand(
        "webhooks:webhook", "Call URLs with your app's events, and see what became of each delivery."
    ),
}


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        commit = find_commit()
        click.echo(f"clawdforge {__version__}" + (f" ({commit})" if commit else ""))
        context.exit()


@click.group(cls=Program, lazy=COMMANDS, context_settings=CONTEXT)
@click.option(
    *("-V", "--version"),
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, with its commit where it is known, and exit.",
)
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
