"""A server whose event loop is profiled from one SIGUSR1 to the next.

    python -m bench.profiled FILE serve …

What it called stands in FILE afterwards, as `pstats` reads it.
"""

import cProfile
import signal
import sys
from pathlib import Path

from clawdforge.cli import main as run_command


class Profiled:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._profile: cProfile.Profile | None = None

    def turn(self, *_: object) -> None:
        """Begin; or end, and tell."""
        profile, self._profile = self._profile, None
        if profile is None:
            self._profile = cProfile.Profile()
            self._profile.enable()
            return
        profile.disable()
        part = self._file.with_suffix(".part")
        profile.dump_stats(part)
        part.rename(self._file)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, Profiled(Path(sys.argv[1])).turn)
    sys.argv = ["clawdforge", *sys.argv[2:]]
    run_command()
