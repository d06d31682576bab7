"""What was decided in the running turn, so that nobody is asked twice about one call of a tool.

Some agents ask for a command and then have us run it, which would be asked about once more. It is not, if it
is the very command that was shown and allowed: once for each time that it was allowed, and only in that turn.
"""

import hashlib
import shlex
from collections.abc import Iterator
from typing import Any, Final

import orjson

from clawdforge.wire.base import Json
from clawdforge.wire.json_bounds import LARGE_BYTES, is_larger

MOST: Final = 256
COMMAND_KEYS: Final = ("command", "cmd", "script")
SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash"})
SHELL_FLAGS: Final = frozenset({"-c", "-lc", "-l", "-e", "-i"})
PLAIN_VARIABLES: Final = frozenset(
    {"TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "LANG", "LC_ALL", "CI", "GIT_TERMINAL_PROMPT"}
)
PAGERS: Final = frozenset({("PAGER", "cat"), ("GIT_PAGER", "cat")})
"""Variables that do not change what a command does. With any other it is not what somebody has seen."""


class Grants:
    """Those of one turn. Bounded: what is beyond is asked about again."""

    def __init__(self) -> None:
        self._decided: dict[str, str] = {}
        self._commands: dict[str, int] = {}

    def clear(self) -> None:
        """The turn is over."""
        self._decided.clear()
        self._commands.clear()

    def find(self, call: Json, options: Any) -> str | None:
        """The option that was chosen for this very call, if it was asked about before."""
        name = _identify(call, options)
        return None if name is None else self._decided.get(name)

    def note(self, call: Json, options: Any, option_id: str) -> None:
        """Somebody chose this option; where it allows the call, its command may be run once.

        Only a command that the call's name shows whole: by its name a call is allowed for good, and some
        who decide see nothing else of it. And only where it is said to be run: reads may be allowed unseen.
        """
        name = _identify(call, options)
        if name is not None and len(self._decided) < MOST:
            self._decided[name] = option_id
        title = call.get("title")
        is_run = call.get("kind") == "execute" and isinstance(title, str)
        if is_run and _allows(options, option_id) and len(self._commands) < MOST:
            for line in shown_commands(call.get("rawInput")):
                if shows(str(title), line.replace("\0", " ")):
                    self._commands[line] = self._commands.get(line, 0) + 1

    def take(self, params: Json) -> bool:
        """Whether what `terminal/create` wants was allowed just now. It is used up by that."""
        if describe_variables(params.get("env")):
            return False
        for line in _ordered_commands(params):
            left = self._commands.get(line, 0)
            if left:
                self._commands[line] = left - 1
                return True
        return False


def _identify(call: Json, options: Any) -> str | None:
    """One name for the same call with the same content; None for a call without an id: it may be another.

    And for one of megabytes: to compare those is no work for the event loop.
    """
    name = call.get("toolCallId")
    if not isinstance(name, str) or not name:
        return None
    shown = [call.get("title"), call.get("kind"), call.get("rawInput"), call.get("content"), list(options)]
    if is_larger(shown, LARGE_BYTES):
        return None
    try:
        content = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, RecursionError):
        return None
    return f"{name}\0{hashlib.sha256(content).hexdigest()}"


def _allows(options: Any, option_id: str) -> bool:
    chosen = [one for one in options if isinstance(one, dict) and one.get("optionId") == option_id]
    return len(chosen) == 1 and str(chosen[0].get("kind")).startswith("allow_")


def shows(title: str, line: str) -> bool:
    """Whether a name is the command, or ends with it, as in "Bash: ls -la"."""
    before, found, after = title.rpartition(line)
    return bool(found) and not after.strip("`'\")") and not before[-1:].isalnum()


def shown_commands(given: Any) -> Iterator[str]:
    """The command that a request shows, as a line for a shell."""
    for key in COMMAND_KEYS if isinstance(given, dict) else ():
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            yield value
            return
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            yield from _lines(value)
            return


def _ordered_commands(params: Json) -> Iterator[str]:
    command, arguments = params.get("command"), params.get("args") or []
    if isinstance(command, str) and isinstance(arguments, list):
        if arguments and all(isinstance(word, str) for word in arguments):
            yield from _lines([command, *arguments])
            yield shlex.join([command, *arguments])  # a shell makes the same words of it
        elif not arguments:
            yield command


def _lines(words: list[str]) -> Iterator[str]:
    """The line that a shell is given, where the words call one; else the words, apart as they are."""
    is_shell = words[0].rpartition("/")[2] in SHELLS and words[0].rpartition("/")[0] in (
        "",
        "/bin",
        "/usr/bin",
    )
    if is_shell and len(words) >= 3 and set(words[1:-1]) <= SHELL_FLAGS and words[-2].endswith("c"):
        yield words[-1]
    else:
        yield "\0".join(words)


def describe_variables(given: Any) -> str:
    """Those variables that may change what a command does, as they are given; empty where there are none."""
    if given in (None, []):
        return ""
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        return "odd variables"
    pairs = [(one.get("name"), one.get("value")) for one in given]
    told = [pair for pair in pairs if pair[0] not in PLAIN_VARIABLES and pair not in PAGERS]
    return " ".join(f"{name}={value}" for name, value in told)
