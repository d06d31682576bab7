"""The flags of the scripted agent: what it declares and how it misbehaves from outside the script."""

from __future__ import annotations

from clawdforge.scripted.system import variables

FLAGS = (
    ("--demo", "be the demo agent: friendly answers; a script command begins with a slash"),
    ("--no-load", "do not declare and not know session/load"),
    ("--no-resume", "do not declare and not know session/resume"),
    ("--replay-on-resume", "replay the history on session/resume, against the protocol"),
    ("--end-turn-on-cancel", "answer a cancelled prompt with end_turn"),
    ("--ignore-cancel", "do not react to session/cancel"),
    ("--ignore-term", "do not react to SIGTERM, SIGINT, SIGHUP and the end of stdin"),
    ("--late-updates", "send one more chunk after the answer of each prompt"),
    ("--lose-last", "write a turn to memory only at the next prompt, at close or at the end of stdin"),
    ("--fsync", "fsync the memory after each line"),
    ("--auth-required", "refuse sessions until authenticate was called"),
    ("--exit-at-start", "say why on stderr and exit with code 3"),
    ("--garbage-at-start", "print lines that are not JSON first"),
    ("--hang-at-start", "read nothing and answer nothing"),
    ("--no-mcp-http", "do not declare that it can use MCP servers over HTTP"),
    ("--no-usage", "do not report usage"),
    ("--usage-cumulative", "report the session's sum instead of the turn's usage"),
)


class UsageError(Exception):
    """A flag that the program does not know."""


class Options:
    """The flags that were given."""

    def __init__(self, arguments: list[str]) -> None:
        known = {flag for flag, _ in FLAGS}
        given: set[str] = set()
        self.witness = variables().get("SCRIPTED_WITNESS")
        rest = iter(arguments)
        for argument in rest:
            if argument == "--witness":
                self.witness = next(rest, None)
                if self.witness is None:
                    raise UsageError("--witness needs a path")
            elif argument in known:
                given.add(argument)
            else:
                raise UsageError(f"unknown flag {argument}; see --help")
        self._given = frozenset(given)

    def __contains__(self, flag: str) -> bool:
        return flag in self._given
