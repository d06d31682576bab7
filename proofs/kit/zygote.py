"""Forks servers from a process that has the modules imported: a start in 0.2 s instead of 2.

    python -m proofs.kit.zygote      # orders on stdin, one JSON object a line; pids on stdout

What a child runs is `clawdforge serve`, with the arguments and the environment of the order.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from clawdforge import server as _server
from clawdforge.cli import main as command_line
from clawdforge.cli import serve as _serve

PR_SET_PDEATHSIG = 1
PR_SET_PTRACER = 0x59616D61
ANY = 2**64 - 1
LOADED = (_serve, _server)


def traced() -> bool:
    status = Path("/proc/self/status").read_text()
    return "TracerPid:\t0\n" not in status


def child(order: dict[str, Any]) -> None:
    """Become a server; with `hold`, only once somebody traces this process."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a proof that is killed leaves no servers
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(order["env"])
    if order.get("nofile"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (order["nofile"],) * 2)
    if order.get("hold"):
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(ANY), 0, 0, 0)
        while not traced():
            time.sleep(0.002)
    sys.argv = ["clawdforge", *order["arguments"]]
    command_line()


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(order)
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
