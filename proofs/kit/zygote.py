"""Forks servers from a process that has imported everything once: a start takes 0.2 s instead of 2.

    python -m proofs.kit.zygote      # orders on stdin, one JSON object a line; an answer to each on stdout

What a child runs is `clawdforge serve`, with the arguments and the environment of the order; the answer is
its pid. `{"ended": PID}` asks how it ended: `null` while it lives, else its exit code, or -N for signal N.
With `known`, it is told what this machine can hold (`known.py`) and does not try it anew.
"""

import asyncio
import ctypes
import functools
import gc
import json
import mmap
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from unittest import mock

import uvicorn

from clawdforge import server as _server
from clawdforge.cli import main as command_line
from clawdforge.cli.commands import serve as _serve
from clawdforge.core.clock import SystemClock
from clawdforge.core.services.all import Services
from clawdforge.drivers.acp.failures import Failures
from clawdforge.drivers.acp.prices import Prices
from clawdforge.drivers.registry import registry
from clawdforge.http import app
from clawdforge.http.access.login import login_router
from clawdforge.http.connections.web_server import WebServer
from clawdforge.http.dialects.deepagent import routers as deepagent
from clawdforge.http.dialects.forge import routers as forge
from clawdforge.http.dialects.hermes import routers as hermes
from clawdforge.http.settings import HttpSettings
from clawdforge.stores.postgres import store as postgres
from clawdforge.stores.sqlite import store as sqlite
from proofs.kit.known import Known

PR_SET_PDEATHSIG = 1
PR_SET_PTRACER = 0x59616D61
ANY = 2**64 - 1
LOADED = (_serve, _server, WebServer)


def is_traced() -> bool:
    status = Path("/proc/self/status").read_text()
    return "TracerPid:\t0\n" not in status


def follow_clock(path: str) -> None:
    """Have the wall clock ahead by as many microseconds as the file says; who writes there sets the clock."""
    file = os.open(path, os.O_RDONLY)
    ahead = mmap.mmap(file, 8, prot=mmap.PROT_READ)
    now = SystemClock.now

    def moved(clock: SystemClock) -> int:
        return now(clock) + int.from_bytes(ahead[:8], "little", signed=True)

    mock.patch.object(SystemClock, "now", moved).start()


def child(order: dict[str, Any], known: Known | None) -> None:
    """Become a server; with `hold`, only once this process is traced."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a proof that is killed leaves no servers
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
        while not is_traced():
            time.sleep(0.002)
    if order.get("clock"):
        follow_clock(order["clock"])
    if known is not None:
        known.tell()
    sys.argv = ["clawdforge", *order["arguments"]]
    command_line()


def warm() -> None:
    """Fill the caches of modules: built models, compiled patterns, lazy imports; and plan each route once.

    All servers have the same routes, and their state is on the ASGI object.
    """
    mock.patch(f"{app.__name__}.login_router", login := functools.cache(login_router)).start()
    for dialect in (forge, hermes, deepagent):
        mock.patch.object(dialect, "routers", functools.cache(dialect.routers)).start()
    _read_tables()
    nobody = cast("Services", None)
    uvicorn.Config(app.build_asgi(nobody, HttpSettings(stopping=asyncio.Event())), log_config=None).load()
    for router in (login(), *forge.routers(), *hermes.routers(""), *deepagent.routers()):
        assert all(route.handler for route in router.routes)
    gc.collect()
    gc.freeze()  # so that a child's collector does not touch, and thereby copy, every page


def _read_tables() -> None:
    """Statements, agents, prices and failures are read once, and are the same for every server."""
    nothing: tuple[dict[str, bool], ...] = ({},)
    packs = tuple({"packs_early": early} for early in (True, False))
    places = ((registry, "load_builtin"), (Prices, "read"), (Failures, "read"), (postgres, "PgQueries"))
    for owner, name in (*places, (sqlite, "Queries")):
        read = functools.cache(getattr(owner, name))
        mock.patch.object(owner, name, read).start()
        for given in packs if name == "Queries" else nothing:
            read(**given)


def reap(codes: dict[int, int]) -> None:
    """Collect the exit codes of servers that have ended."""
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            codes[found[0]] = os.waitstatus_to_exitcode(found[1])


def main() -> None:
    warm()
    codes: dict[int, int] = {}
    known: Known | None = None
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        reap(codes)
        if "ended" in order:
            print(json.dumps(codes.get(order["ended"])), flush=True)
            continue
        known = known or (Known.find() if order.get("known") else None)
        pid = os.fork()
        if pid == 0:
            child(order, known if order.get("known") else None)
            os._exit(0)
        codes.pop(pid, None)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
