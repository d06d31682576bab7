"""The prompt language: lines to steps, by a table of commands whose usage line is also their parser."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # at a start this would be a tenth of what is imported
    from collections.abc import Callable

REST = frozenset({"TEXT", "TITLE", "MESSAGE", "CMD", "LIST", "JSON"})
INTEGERS = frozenset({"N", "SIZE", "DELAY_MS", "IN", "OUT", "CACHED", "CODE", "USED"})


class Command:
    """A word of the language: `usage` names its arguments, those in brackets may be left out."""

    __slots__ = ("help", "name", "run", "usage")

    def __init__(self, name: str, usage: str, run: Callable[..., None], help_text: str) -> None:
        self.name = name
        self.usage = usage
        self.run = run
        self.help = help_text

    def parse(self, rest: str) -> list[object] | None:
        """Return the arguments, or None when they do not fit: then the line is plain text."""
        found: list[object] = []
        for name in self.usage.split():
            optional = name.startswith("[")
            name = name.strip("[]")  # noqa: PLW2901 - the bracket is no part of the name
            if name in REST:
                word, rest = rest, ""
            else:
                word, _, rest = rest.partition(" ")
            if not word:
                if optional:
                    continue
                return None
            value = _value(name, word)
            if value is None:
                return None
            found.append(value)
        return None if rest else found


class Step:
    """A command with its arguments."""

    __slots__ = ("arguments", "run")

    def __init__(self, run: Callable[..., None], arguments: list[object]) -> None:
        self.run = run
        self.arguments = arguments


def parse_line(line: str, commands: dict[str, Command]) -> Step | None:
    word, _, rest = line.rstrip("\r").partition(" ")
    command = commands.get(word)
    arguments = command.parse(rest) if command is not None else None
    return None if command is None or arguments is None else Step(command.run, arguments)


def parse(text: str, commands: dict[str, Command], plain: Callable[..., None]) -> list[Step]:
    """Turn a prompt into steps; neighbouring lines that are no commands are one plain text, kept exactly."""
    steps: list[Step] = []
    lines: list[str] = []
    for line in text.split("\n"):
        step = parse_line(line, commands)
        if step is None:
            lines.append(line)
            continue
        if "".join(lines).strip():
            steps.append(Step(plain, ["\n".join(lines)]))
        lines = []
        steps.append(step)
    if not steps or "".join(lines).strip():
        steps.append(Step(plain, ["\n".join(lines)]))
    return steps


def _value(name: str, word: str) -> object:
    if name in INTEGERS:
        return int(word) if word.isdecimal() else None
    if name in ("SECS", "USD"):
        return float(word) if word.replace(".", "", 1).isdecimal() else None
    return word
