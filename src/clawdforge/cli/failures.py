"""How a command ends: its exit codes, and messages that say what to do next."""

from enum import IntEnum
from typing import IO, Any, Final

import click


class Exit(IntEnum):
    """What a script can tell apart. The reference lists them."""

    OK = 0
    ERROR = 1
    USAGE = 2
    TIMEOUT = 3
    NOT_FOUND = 4
    DENIED = 5
    AUTH = 6
    UNREACHABLE = 7
    INCOMPLETE = 8
    LIMIT = 9
    CUT_SHORT = 10
    INTERRUPTED = 130


MEANINGS: Final = {
    Exit.OK: "it worked",
    Exit.ERROR: "an error, of the agent or of the server",
    Exit.USAGE: "the command was not written correctly",
    Exit.TIMEOUT: "it took too long",
    Exit.NOT_FOUND: "there is no such session, or more than one",
    Exit.DENIED: "the agent was refused a permission",
    Exit.AUTH: "the token is missing, wrong, or not allowed to do this",
    Exit.UNREACHABLE: "no server answers",
    Exit.INCOMPLETE: "done, but something was left out or needs an option later; the message says what",
    Exit.LIMIT: "the turn crossed a limit that it was given, and was stopped; the answer so far is kept",
    Exit.CUT_SHORT: "the model refused to answer, or reached a limit of its own; what it said was printed",
    Exit.INTERRUPTED: "stopped with Ctrl-C",
}

BY_CODE: Final = {
    "unauthenticated": Exit.AUTH,
    "forbidden": Exit.AUTH,
    "turn_timed_out": Exit.TIMEOUT,
    "invalid_request": Exit.USAGE,
}

NEXT: Final = {
    "unauthenticated": "set a valid token in CLAWDFORGE_TOKEN, or unset it to use the data folder's",
    "forbidden": "this token may not do that; operators set CLAWDFORGE_ADMIN_TOKEN",
    "session_not_found": "list yours with `clawdforge sessions list --all`",
    "session_closed": "open it again with `clawdforge sessions resume --reopen ID`",
    "unknown_agent": "list the agents with `clawdforge agents`",
    "agent_not_installed": "`clawdforge setup AGENT` does it for you",
    "agent_auth_required": "then renew the server with `clawdforge server restart`",
    "turn_timed_out": "allow more time with --timeout SECS",
    "turn_interrupted": "send the prompt again with `clawdforge retry ID`",
    "workspace_refused": "run it in another folder, or name one with -C",
    "route_not_found": "the server is older than this command line; update it",
    "stopping": "the server is about to stop; try again in a moment",
}


class Failure(click.ClickException):
    """Ends a command with a message and an exit code."""

    def __init__(self, message: str, code: int = Exit.ERROR) -> None:
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"clawdforge: {self.message}", file=file, err=file is None)


def refusal(status: int, code: str, message: str) -> Failure:
    """The failure that a server's refusal becomes."""
    found = Exit.NOT_FOUND if status == 404 else Exit.ERROR
    hint = NEXT.get(code)
    return Failure(f"{message}; {hint}" if hint else message, BY_CODE.get(code, found))


def unreachable(url: str, why: str) -> Failure:
    return Failure(
        f"no answer from {url} ({why}); is it running? Start it with `clawdforge serve`", Exit.UNREACHABLE
    )
