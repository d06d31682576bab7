"""Commands that make trouble: hang, die, garble, flood, fork."""

# ruff: noqa: SLF001 - of `posix`, which is `os` without 2 ms of imports, `_exit` is no secret

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` itself takes 3 ms for its enums
import posix as os
import time

from clawdforge.scripted.script import Command
from clawdforge.scripted.system import join
from clawdforge.scripted.talking import chunks
from clawdforge.scripted.turn import BLOCK, Refused, Turn

LIFETIME = 60.0  # seconds that a stray process lives at most, so that a failed test leaves no litter
STDERR = 2


def hang(turn: Turn) -> None:
    while True:
        turn.sleep(LIFETIME)


def hang_hard(turn: Turn) -> None:
    turn.connection.deaf = True
    turn.say("deaf")
    while True:
        time.sleep(LIFETIME)


def crash(_turn: Turn, code: int = 1) -> None:
    os._exit(code)


def crash_after(turn: Turn, count: int) -> None:
    chunks(turn, count)
    os._exit(1)


def kill_self(_turn: Turn) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def forget_session(turn: Turn) -> None:
    turn.session.forgotten = True


def error_once(turn: Turn, path: str, message: str) -> None:
    """Fail before anything is said; the file in the workspace tells the next attempt of it."""
    try:
        os.close(os.open(join(turn.session.cwd, path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return
    raise Refused(-32603, message)


def close_stdout(turn: Turn) -> None:
    turn.connection.close()


def garbage(turn: Turn, count: int) -> None:
    for number in range(1, count + 1):
        turn.check()
        turn.connection.write(b"this is no JSON {%d\n" % number)


def objects(turn: Turn, count: int) -> None:
    blocks, rest = divmod(count, BLOCK)
    head, tail = b'{"jsonrpc":"2.0","method":"session/update","params":{"x":[', b"{}]}}\n"
    turn.connection.write(head, *[b"{}," * BLOCK] * blocks, b"{}," * rest, tail)


def raw(turn: Turn, text: str) -> None:
    turn.connection.write(text.encode() + b"\n")


def bad_utf8(turn: Turn) -> None:
    turn.say_raw(b"bad \xff\xfe\xc3\x28 bytes")


def surrogate(turn: Turn) -> None:
    turn.say_raw(rb"lone \ud800 surrogate")


def dup_response(turn: Turn) -> None:
    turn.answers = 2


def wrong_id(turn: Turn) -> None:
    turn.connection.answer(987654321, {"stopReason": "end_turn"})


def stderr(_turn: Turn, size: int) -> None:
    line = b"e" * 79 + b"\n"
    while size > 0:
        part = (line * (BLOCK // len(line)))[:size]
        size -= os.write(STDERR, part)


def daemon(turn: Turn, path: str = "daemon.log") -> None:
    """Leave the process tree: fork twice, own session, no shared pipes; a growing file shows its life."""
    path = join(turn.session.cwd, path)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        grandchild = os.fork()
        if grandchild:
            os.write(writer, b"%d" % grandchild)
            os._exit(0)
        _haunt(path)
    os.close(writer)
    os.waitpid(child, 0)
    turn.say(os.read(reader, 32).decode())
    os.close(reader)


def children(turn: Turn, count: int) -> None:
    """Fork children that stay in the process group and hold the pipes open."""
    pids = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            time.sleep(LIFETIME)
            os._exit(0)
        pids.append(str(child))
    turn.say(" ".join(pids))


def _haunt(path: str) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(null, handle)
    os.closerange(3, 256)
    end = time.monotonic() + LIFETIME
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    while time.monotonic() < end:
        os.write(file, b"%d %f\n" % (os.getpid(), time.time()))
        time.sleep(0.05)
    os._exit(0)


COMMANDS = (
    Command("hang", "", hang, "never answer; a cancel ends it"),
    Command(
        "hang-hard",
        "",
        hang_hard,
        "say `deaf`, then never answer; ignore cancel, SIGTERM and the end of stdin",
    ),
    Command("crash", "[CODE]", crash, "exit at once"),
    Command("crash-after", "N", crash_after, "send N chunks, then exit at once"),
    Command("kill-self", "", kill_self, "die of SIGKILL"),
    Command("close-stdout", "", close_stdout, "close stdout and live on"),
    Command(
        "forget-session",
        "",
        forget_session,
        "answer every later prompt with `Resource not found`",
    ),
    Command(
        "error-once",
        "PATH MESSAGE",
        error_once,
        "answer with a JSON-RPC error at once, unless it did so before: the file PATH tells",
    ),
    Command("garbage", "N", garbage, "N lines that are not JSON"),
    Command("objects", "N", objects, "an update of more than N empty objects: one huge line"),
    Command("raw", "TEXT", raw, "TEXT as a line of its own on stdout"),
    Command("bad-utf8", "", bad_utf8, "a chunk with bytes that are not UTF-8"),
    Command("surrogate", "", surrogate, "a chunk with an escaped lone surrogate"),
    Command("dup-response", "", dup_response, "answer the prompt twice"),
    Command("wrong-id", "", wrong_id, "an answer to a request that was never made"),
    Command("stderr", "SIZE", stderr, "SIZE bytes on stderr"),
    Command("daemon", "[PATH]", daemon, "start a process outside the tree; it appends to PATH; says its pid"),
    Command("children", "N", children, "start N children that hold the pipes open; says their pids"),
)
