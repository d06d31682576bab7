"""The small program that stays in one session's namespace and runs acpx there.

Run as a file, `python -I -S acpx_host.py`; it imports the standard library only. The queue owner that acpx
leaves behind, and its agent, live in the same namespace and end with this program: at the end of its input.

A line on stdin is `{"run": ID, "argv": […], "input": TEXT}`. The command's output is this program's output,
untouched; a line `{"run": ID, "exit": CODE}` follows it. With `"quiet": true` it leaves no trace, so that it
can run beside another: nothing may come between the bytes of somebody's line. `"record": NAME` in place of a
command prints which session of the agent acpx has under that name. It is read here, where the agent, which
may have put anything in its place, can only harm itself.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.parse
from typing import Any


def run_command(order: dict[str, Any]) -> None:
    quiet = bool(order.get("quiet"))
    try:
        child = subprocess.Popen(
            order["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if quiet else None,
            stderr=subprocess.DEVNULL if quiet else None,
        )
    except OSError as error:
        if not quiet:
            report_end(order, 127, str(error))
        return
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError), child.stdin as pipe:
            pipe.write(str(order.get("input", "")).encode("utf-8", "surrogatepass"))
    code = child.wait()
    if not quiet:
        report_end(order, code, "")


def print_record(order: dict[str, Any]) -> None:
    name = urllib.parse.quote(str(order["record"]), safe="")
    path = os.path.join(os.environ["HOME"], ".acpx", "sessions", f"{name}.json")  # noqa: PTH118 -- starts quickly
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- as above
            found = json.load(file).get("acp_session_id")
    except (OSError, ValueError, AttributeError, RecursionError):
        found = None
    own = found if isinstance(found, str) else None
    os.write(1, json.dumps({"acpSessionId": own}).encode() + b"\n")
    report_end(order, 0, "")


def report_end(order: dict[str, Any], code: int, words: str) -> None:
    line = json.dumps({"run": order.get("run"), "exit": code, "words": words})
    # A command that was killed may have left half a line.
    os.write(1, f"\n{line}\n".encode())


def remove_stale_locks() -> None:
    """Remove the locks that a killed acpx left in this home. acpx would wait for them for ever; no other
    program uses this home, so they cannot be in use."""
    records = os.path.expanduser("~/.acpx")  # noqa: PTH111 -- a quick start
    shutil.rmtree(os.path.join(records, "queues"), ignore_errors=True)  # noqa: PTH118 -- as above
    sessions = os.path.join(records, "sessions")  # noqa: PTH118 -- as above
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(sessions)  # noqa: PTH208 -- as above
    for name in names:
        if name.endswith((".lock", ".lock.guard")):
            with contextlib.suppress(OSError):  # go on with the others
                os.unlink(os.path.join(sessions, name))  # noqa: PTH108, PTH118 -- as above


def main() -> None:
    remove_stale_locks()
    for line in sys.stdin.buffer:
        order = json.loads(line)
        work = print_record if "record" in order else run_command
        threading.Thread(target=work, args=(order,), daemon=True).start()
    os._exit(0)


if __name__ == "__main__":
    main()
