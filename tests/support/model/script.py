"""What the endpoint does with a request: the last prompt's own words say it.

mark:WORD            told back in every later answer: proof of what the request still held
tool:bash COMMAND    call the agent's shell tool, whatever it is called
tool:plain COMMAND   the same, without asking for more than the agent's own sandbox allows
tool:NAME {JSON}     call a tool by its name
error:STATUS [N]     answer with this status; with N, only the first N times
too_long             refuse the conversation as longer than the model can take
hang [SECONDS]       say nothing for so long
slow:N MS [WORD]     N words with a pause after each; WORD1 WORD2 … instead of numbers
cut                  break the stream off in the middle
say:TEXT             exactly this text
"""

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.support.model.conversation import Conversation, Tool

MARK: Final = re.compile(r"\bmark:(\w+)")
TOOL: Final = re.compile(r"\btool:([\w.-]+)[ \t]*([^\n]*)")
ERROR: Final = re.compile(r"\berror:(\d{3})(?:[ \t]+(\d+))?")
HANG: Final = re.compile(r"\bhang(?::?[ \t]*(\d+(?:\.\d+)?))?\b")
TOO_LONG: Final = re.compile(r"\btoo_long\b")
SLOW: Final = re.compile(r"\bslow:(\d+)[ \t]+(\d+)(?:[ \t]+([a-z]+)\b)?")
CUT: Final = re.compile(r"^cut\b", re.MULTILINE)
SAY: Final = re.compile(r"\bsay:([^\n]*)")
SHELL_NAMES: Final = re.compile(r"bash|shell|terminal|exec|command", re.IGNORECASE)
SHELL_ARGUMENTS: Final = ("command", "cmd", "script", "input")
ESCALATED: Final = "require_escalated"
FOREVER: Final = 3600.0
CACHED: Final = 64


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants to be run."""

    id: str
    name: str
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Usage:
    """`cached` is beside `taken`, not part of it."""

    taken: int
    given: int
    cached: int = CACHED


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a request is answered."""

    words: tuple[str, ...] = ()
    pause: float = 0.0
    wait: float = 0.0
    status: int = 200
    too_long: bool = False
    cut: bool = False
    call: Call | None = None
    usage: Usage

    @property
    def text(self) -> str:
        return "".join(self.words)


class Script:
    """Counts what was asked before, for errors that pass."""

    def __init__(self) -> None:
        self._calls = itertools.count(1)
        self._failed: dict[str, int] = {}

    def plan(self, asked: Conversation) -> Plan:
        taken = max(1, asked.size // 4)
        if asked.aside:
            return _speak(
                ["A short title" if asked.schema is None else json.dumps(_filled(asked.schema))], taken
            )
        if asked.result is not None:
            return _speak(_words(f"{_report(asked)} tool={_brief(asked.result, 200)}"), taken)
        last = _newest(asked.turns[-1]) if asked.turns else ""
        if (found := ERROR.search(last)) is not None and self._fails(last, found[2]):
            return Plan(status=int(found[1]), usage=Usage(0, 0, 0))
        if TOO_LONG.search(last) is not None:
            return Plan(status=400, too_long=True, usage=Usage(0, 0, 0))
        called = self._call(TOOL.search(last), asked.tools)
        if called is not None:
            return Plan(call=called, usage=Usage(taken, len(called.text) // 4 + 1))
        return _talk(last, _report(asked), taken)

    def _fails(self, text: str, times: str | None) -> bool:
        if times is None:
            return True
        self._failed[text] = self._failed.get(text, 0) + 1
        return self._failed[text] <= int(times)

    def _call(self, found: re.Match[str] | None, tools: Iterable[Tool]) -> Call | None:
        if found is None:
            return None
        name, rest = found[1], found[2].strip()
        number = f"call_{next(self._calls)}"
        for tool in tools:
            if tool.name == name and rest.startswith("{"):
                return Call(number, name, json.loads(rest))
        if name not in ("bash", "plain"):
            return None
        shells = [(tool, _shell_argument(tool)) for tool in tools if SHELL_NAMES.search(tool.name)]
        for tool, argument in shells:
            if argument is not None:
                return Call(number, tool.name, _shell_arguments(tool, argument, rest, name == "bash"))
        return None


def _newest(text: str) -> str:
    """From the last mark on: some agents put a prompt that was cut off and the next one into one message."""
    marks = list(MARK.finditer(text))
    return text[marks[-1].start() :] if marks else text


def _talk(last: str, report: str, taken: int) -> Plan:
    if (found := HANG.search(last)) is not None:
        return _speak(_words(report), taken, wait=float(found[1] or FOREVER))
    if (found := SLOW.search(last)) is not None:
        words = [f"{found[3] or ''}{number} " for number in range(1, int(found[1]) + 1)]
        return _speak(words, taken, pause=int(found[2]) / 1000)
    if (found := SAY.search(last)) is not None:
        return _speak(_words(found[1]), taken)
    return _speak(_words(report), taken, cut=CUT.search(last) is not None)


def _shell_argument(tool: Tool) -> str | None:
    return next((name for name in SHELL_ARGUMENTS if name in tool.properties), None)


def _shell_arguments(tool: Tool, argument: str, command: str, more: bool) -> dict[str, Any]:
    """The command, and something for whatever else the tool insists on."""
    kind = tool.properties[argument]
    listed = isinstance(kind, dict) and kind.get("type") == "array"
    arguments: dict[str, Any] = {argument: ["bash", "-lc", command] if listed else command}
    asking = [name for name, choices in _choices(tool) if ESCALATED in choices and more]
    arguments |= dict.fromkeys(asking, ESCALATED)  # an agent with a sandbox of its own asks for this
    for name in (*tool.required, *(["justification"] if asking else [])):
        if name not in arguments:
            wanted = tool.properties.get(name)
            arguments[name] = _filler(wanted if isinstance(wanted, dict) else {})
    return arguments


def _choices(tool: Tool) -> list[tuple[str, list[Any]]]:
    fields = ((name, field) for name, field in tool.properties.items() if isinstance(field, dict))
    return [(name, field["enum"]) for name, field in fields if isinstance(field.get("enum"), list)]


def _filler(schema: Mapping[str, Any]) -> Any:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    most = schema.get("maximum")
    number = min(1000, most) if isinstance(most, int | float) else 1000
    fillers: dict[str, Any] = {
        "boolean": False,
        "integer": number,
        "number": number,
        "array": [],
        "object": {},
    }
    return fillers.get(str(schema.get("type")).lower(), "what the script asks for")


def _filled(schema: Mapping[str, Any]) -> Any:
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        return _filler(schema)
    return {name: _filled(field) for name, field in fields.items() if isinstance(field, dict)}


def _report(asked: Conversation) -> str:
    turns = asked.turns
    first = _brief(turns[0], 40).replace("mark:", "mark ") if turns else ""
    marks = ",".join(mark for turn in turns for mark in MARK.findall(turn))
    return f"turn={len(turns)} first={first!r} marks={marks or '-'}"


def _brief(text: str, chars: int) -> str:
    return " ".join(text.split())[:chars]


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


def _speak(words: list[str], taken: int, *, pause: float = 0.0, wait: float = 0.0, cut: bool = False) -> Plan:
    given = max(1, sum(map(len, words)) // 4)
    return Plan(words=tuple(words), pause=pause, wait=wait, cut=cut, usage=Usage(taken, given))
