"""Starts the guard of a server's agents, and tells it that the server lives."""

import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes.guard import tag_of
from clawdforge.drivers.processes.survivors import TAG, folder_id

log = logging.getLogger(__name__)
PROGRAM: Final = "clawdforge.drivers.processes.guard"
PACKAGES: Final = Path(__file__).parents[3]
END_SECS: Final = 2.0


class Guard:
    """Where it is gone, the next sign of life starts another one. Agents cannot read what the server knows
    from it: it has none of the server's variables."""

    def __init__(self, data_dir: Path, boot: str) -> None:
        self._folder = folder_id(data_dir)
        self._boot = boot
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def live_until(self, at: float) -> None:
        """The server may have agents until then, by the clock of `time.monotonic`, if it says no more."""
        line = f"{at:.6f}\n".encode()
        if not self._say(line):
            self._start()
            self._say(line)

    def close(self) -> None:
        """No agent is left."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(END_SECS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _say(self, line: bytes) -> bool:
        """Whether it was heard. It reads at once: a pipe without room means that it stands still itself."""
        if self._process is None or self._process.stdin is None:
            return False
        try:
            return os.write(self._process.stdin.fileno(), line) == len(line)
        except OSError:
            return False

    def _make_environment(self) -> dict[str, str]:
        needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        return {**needed, "PYTHONPATH": str(PACKAGES), TAG: str(tag_of(self._folder, self._boot))}

    def _start(self) -> None:
        if self._process is not None:
            log.error("the guard of the agents was gone; another one is started")
            self._process.kill()
            self.close()
        words = (self._folder, self._boot, str(os.getpid()))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-P", "-m", PROGRAM, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=self._make_environment(),
                cwd="/",
                start_new_session=True,  # what stops the server's terminal does not stop it
            )
        except OSError as error:
            log.error("agents have no guard: it cannot be started (%s)", error)  # noqa: TRY400 - no bug of ours
            return
        with contextlib.suppress(OSError, ValueError):
            os.set_blocking(self._process.stdin.fileno(), False)  # type: ignore[union-attr]
