"""The program: flags, help, signals, and the loop that reads the client's lines."""

# ruff: noqa: SLF001 - of `posix`, which is `os` without 2 ms of imports, `_exit` is no secret

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` itself takes 3 ms for its enums
import posix as os
import sys
import time

from clawdforge.scripted import looking, talking, trouble
from clawdforge.scripted.connection import Connection, RpcError
from clawdforge.scripted.methods import Methods
from clawdforge.scripted.options import FLAGS, Options, UsageError
from clawdforge.scripted.plain_json import decode
from clawdforge.scripted.script import Command

TABLES = (("speak", talking.COMMANDS), ("look", looking.COMMANDS), ("trouble", trouble.COMMANDS))


def commands() -> dict[str, Command]:
    """Return the whole prompt language."""
    return {command.name: command for _, table in TABLES for command in table}


def help_text() -> str:
    rows = ["A scripted ACP agent on stdin and stdout. The prompt's text says what it does.", "", "Flags:"]
    rows += [f"  {flag:<24}{text}" for flag, text in FLAGS]
    rows += [f"  {'--witness PATH':<24}append every prompt received to PATH (or env SCRIPTED_WITNESS)"]
    rows += ["", "A prompt is one or more commands, one per line. Any other text is echoed as one chunk."]
    for title, table in TABLES:
        rows += ["", f"Commands that {title}:" if title != "trouble" else "Commands that make trouble:"]
        rows += [f"  {f'{command.name} {command.usage}':<30}{command.help}" for command in table]
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    if "--help" in arguments or "-h" in arguments:
        print(help_text())
        return 0
    try:
        options = Options(arguments)
    except UsageError as problem:
        print(f"scripted agent: {problem}", file=sys.stderr)
        return 2
    connection = Connection()
    connection.deaf = "--ignore-term" in options

    def on_signal(number: int, _frame: object) -> None:
        if not connection.deaf:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    if "--exit-at-start" in options:
        print("scripted agent: I was told to exit at the start", file=sys.stderr)
        return 3
    if "--hang-at-start" in options:
        time.sleep(trouble.LIFETIME)
        return 0
    if "--garbage-at-start" in options:
        connection.write(b"Welcome to the agent!\n\n{not json\n\xff\xfe\n[1, 2]\n")
    methods = Methods(connection, options, commands())
    _serve(connection, methods)
    methods.flush()
    if connection.deaf:
        time.sleep(trouble.LIFETIME)
    os._exit(0)  # running turns end here, as they are


def _serve(connection: Connection, methods: Methods) -> None:
    for line in sys.stdin.buffer:
        try:
            message = decode(line)
        except ValueError:
            connection.refuse(None, RpcError(-32700, "Parse error: a line must be one JSON-RPC message"))
            continue
        if not isinstance(message, dict):
            connection.refuse(None, RpcError(-32600, "Invalid request: a message must be an object"))
        elif "method" in message:
            methods.handle(message)
        else:
            connection.resolve(message)
