"""Commands that look: at memory, files, the environment, and through the client."""

# pathlib would add 6 ms to each start of a program that is started thousands of times.
# ruff: noqa: PTH123

from __future__ import annotations

import posix as os

from clawdforge.scripted.connection import RpcError
from clawdforge.scripted.plain_json import spell
from clawdforge.scripted.script import Command
from clawdforge.scripted.system import join, variables
from clawdforge.scripted.talking import TOOL_KINDS
from clawdforge.scripted.turn import Turn

CHOICES = (
    ("allow_once", "Allow once"),
    ("allow_always", "Always allow"),
    ("reject_once", "Reject"),
    ("reject_always", "Always reject"),
)


def recall(turn: Turn, what: str = "prompts") -> None:
    """Tell what was remembered before this prompt."""
    lines = turn.session.memory.lines[: -1 - len(turn.context)]
    if what == "all":
        turn.say(spell([{"role": line["role"], "text": line["text"]} for line in lines]))
    else:
        turn.say(spell([line["text"] for line in lines if line["role"] == "user"]))


def count(turn: Turn) -> None:
    turn.say(f"turn={turn.number}")


def summary(turn: Turn) -> None:
    prompts = turn.session.memory.texts("user")[:-1]
    parts = "; ".join(f"{number}. {text[:60]}" for number, text in enumerate(prompts, 1))
    turn.say(f"Summary of {len(prompts)} prompts: {parts}")


def cwd(turn: Turn) -> None:
    turn.say(turn.session.cwd)


def home(turn: Turn) -> None:
    turn.say(variables().get("HOME", ""))


def pid(turn: Turn) -> None:
    turn.say(str(os.getpid()))


def env(turn: Turn, name: str = "") -> None:
    turn.say(variables().get(name, "") if name else spell(sorted(variables())))


def mcp(turn: Turn) -> None:
    turn.say(spell(turn.session.servers))


def meta(turn: Turn) -> None:
    turn.say(spell(turn.meta))


def read(turn: Turn, path: str) -> None:
    try:
        with open(_absolute(turn, path), encoding="utf-8", errors="replace") as file:
            turn.say(file.read())
    except OSError as problem:
        turn.say(f"error: {problem}")


def write(turn: Turn, path: str, text: str) -> None:
    try:
        with open(_absolute(turn, path), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        turn.say(f"error: {problem}")
    else:
        turn.say(f"wrote {path}")


def fs_read(turn: Turn, path: str) -> None:
    try:
        turn.say(str(turn.ask("fs/read_text_file", path=_absolute(turn, path)).get("content", "")))
    except RpcError as problem:
        turn.say(f"error: {problem.code} {problem.message}")


def fs_write(turn: Turn, path: str, text: str) -> None:
    try:
        turn.ask("fs/write_text_file", path=_absolute(turn, path), content=text)
    except RpcError as problem:
        turn.say(f"error: {problem.code} {problem.message}")
    else:
        turn.say(f"wrote {path}")


def terminal(turn: Turn, line: str) -> None:
    """Run a shell line in the client's terminal; it is released also when the turn is cancelled."""
    try:
        made = turn.ask("terminal/create", command="sh", args=["-c", line], cwd=turn.session.cwd)
        terminal_id = made.get("terminalId")
        try:
            ended = turn.ask("terminal/wait_for_exit", terminalId=terminal_id)
            output = turn.ask("terminal/output", terminalId=terminal_id).get("output", "")
        finally:
            turn.post("terminal/release", terminalId=terminal_id)
    except RpcError as problem:
        turn.say(f"error: {problem.code} {problem.message}")
    else:
        turn.say(f"exit={ended.get('exitCode')} signal={ended.get('signal')}\n{output}")


def ask(turn: Turn, title: str) -> None:
    """Ask for permission; the last word of the title is the tool's kind, if it is one."""
    head, _, last = title.rpartition(" ")
    kind = "execute"
    if head and last in TOOL_KINDS:
        title, kind = head, last
    call = turn.tool_id()
    seen: dict[str, object] = {"toolCallId": call, "title": title, "kind": kind, "status": "pending"}
    turn.update("tool_call", **seen)
    options = [{"optionId": choice, "kind": choice, "name": name} for choice, name in CHOICES]
    try:
        outcome = turn.ask("session/request_permission", toolCall=seen, options=options).get("outcome")
    except RpcError as problem:
        said = f"error {problem.code} {problem.message}"
    else:
        fields: dict[str, object] = outcome if isinstance(outcome, dict) else {}
        said = str(fields.get("optionId", fields.get("outcome", "nothing")))
    status = "completed" if said.startswith("allow") else "failed"
    turn.update("tool_call_update", toolCallId=call, status=status)
    turn.say(f"permission: {said}")


def _absolute(turn: Turn, path: str) -> str:
    return join(turn.session.cwd, path)


COMMANDS = (
    Command(
        "recall", "[WHAT]", recall, "the prompts it remembers, as a JSON list; `recall all`: every message"
    ),
    Command("count", "", count, "`turn=n`: the number of prompts it remembers, this one too"),
    Command("summary", "", summary, "a summary of what it remembers, always the same for the same memory"),
    Command("cwd", "", cwd, "the session's working folder"),
    Command("home", "", home, "its HOME"),
    Command("pid", "", pid, "its process id"),
    Command("env", "[NAME]", env, "the names of its environment as a JSON list, or one value"),
    Command("mcp", "", mcp, "the MCP servers that it was told of, with all that it was told, as a JSON list"),
    Command("meta", "", meta, "what came beside the prompt in `_meta`, as JSON"),
    Command("read", "PATH", read, "a file's text, read by itself"),
    Command("write", "PATH TEXT", write, "write a file by itself"),
    Command("fs-read", "PATH", fs_read, "a file's text, through the client"),
    Command("fs-write", "PATH TEXT", fs_write, "write a file through the client"),
    Command("terminal", "CMD", terminal, "run a shell line in the client's terminal: exit code and output"),
    Command("ask", "TITLE", ask, "ask for permission and say the choice; a tool kind may be the last word"),
)
