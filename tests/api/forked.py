"""A server that was forked from a process with its modules loaded: a fifth of the time of a cold start.

It has the face of a `Popen`. What it lacks is a command line and an environment of its own in /proc, and the
memory of a process that loaded everything itself: tests that look at those start cold.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofs.kit.server import ROOT, Zygote, zygote

LOOK_SECS = 0.01


class Forked:
    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        with zygote(ROOT) as parent:
            self._parent: Zygote = parent
        self.returncode: int | None = None
        self.pid = self._parent.fork(arguments=list(arguments), env=dict(env), log=str(log), known=True)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._parent.exit_code(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"server {self.pid}", timeout or 0)
            time.sleep(LOOK_SECS)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)  # not reaped before `poll` says so: the pid is still its own

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
