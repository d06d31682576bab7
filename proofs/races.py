"""Files are swapped under the server while it works on them: no secret is read, nothing of others changed.

Round number n of a run is drawn from `--seed` + n alone, so `--seed N --size 1` has any of them again.
"""

import os
import random
import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from proofs.kit.racing import DEEDS, Round
from proofs.kit.report import Run
from proofs.kit.server import Server, zygote
from proofs.kit.track import LEVELS, Track, find_python

SHORT, FULL = 14, 2000
ORDINARY = 1000
"""The user that a server runs as which is not root."""


def prove(run: Run) -> None:
    """Several at a time, each with servers of its own: a round waits more than it works."""
    workers = 1 if run.short else run.workers
    race = _Race(run)
    with ThreadPoolExecutor(workers) as pool:
        shares = [pool.submit(race.play, range(first, run.size, workers)) for first in range(workers)]
        for share in shares:
            share.result()
    run.check(race.swaps > 50 * run.size, f"only {race.swaps} swaps in {run.size} rounds: nothing was raced")
    counts, statuses = race.counts, race.statuses
    good = statuses[200]
    run.check(good > 0.6 * statuses.total(), f"only {good} of {statuses.total()} requests were granted")
    run.figure(
        rounds=race.rounds,
        swaps=race.swaps,
        answers=", ".join(f"{status} {count} times" for status, count in sorted(statuses.items())),
        deeds=", ".join(f"{name} {counts[name]}" for name in DEEDS if counts[name]),
        levels=", ".join(f"{name} {counts[name]}" for name in LEVELS if counts[name]),
        users=", ".join(f"{name} {counts[name]}" for name in ("as root", "as a user") if counts[name]),
    )


class _Race:
    """All rounds of a run, and what came of them. Threads play them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._deeds, self._levels = _choose(run.only, list(DEEDS)), _choose(run.only, list(LEVELS))
        ordinary = [ORDINARY] if find_python(ORDINARY, run.source) else []
        self._users = [os.geteuid()] if os.geteuid() else [0, *ordinary]
        self._counting = threading.Lock()
        self._broke_off = threading.Event()
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.rounds = self.swaps = 0

    def play(self, numbers: range) -> None:
        with _tracks(self._run) as tracks:
            for number in numbers:
                if self._broke_off.is_set():
                    return
                try:
                    self._play_one(number, tracks)
                except BaseException:
                    self._broke_off.set()
                    raise

    def _play_one(self, number: int, tracks: "_Tracks") -> None:
        run = self._run
        chance = random.Random(run.seed + number)
        # One after the other, so that a short form has each deed.
        deed = self._deeds[(run.seed + number) % len(self._deeds)]
        level, user = chance.choice(self._levels), chance.choice(self._users)
        round_ = Round(tracks.find(user, level), chance, deed, run.short)
        round_.play()
        with self._counting:
            self.rounds += 1
            self.swaps += round_.swaps
            self.counts.update([deed, level, "as root" if user == 0 else "as a user"])
            self.statuses += round_.track.statuses
            round_.track.statuses.clear()
            for what in round_.violations:
                run.violate(what)
            if round_.violations:
                parts = "".join(f" --only {word}" for word in run.only)
                print(f"      again: ./scripts/prove races --seed {run.seed + number} --size 1{parts}")
            run.progress(f"{self.rounds} of {run.size} rounds")


def _choose(words: tuple[str, ...], names: list[str]) -> list[str]:
    """Those that a word names; all, if none does."""
    return [name for name in names if name in words] or names


class _Tracks:
    """The servers that are raced against, each started when a round first needs it."""

    def __init__(self, run: Run, stack: ExitStack) -> None:
        self._run = run
        self._stack = stack
        self._found: dict[tuple[int, bool], Track] = {}

    def find(self, user: int, level: str) -> Track:
        """`landlock` is what is left on a server without bubblewrap."""
        key = (user, level != "landlock")
        if key not in self._found:
            self._found[key] = self._start(*key)
        return self._found[key].at(level)

    def _start(self, user: int, bubblewrap: bool) -> Track:
        folder = Path(tempfile.mkdtemp(prefix="clawdforge-races-", dir="/var/tmp"))  # all users get there
        self._stack.callback(_remove, folder)
        folder.chmod(0o755)
        os.chown(folder, user, user)
        made = self._stack.enter_context(zygote(self._run.source))
        server = self._stack.enter_context(Server(folder, made, source=self._run.source))
        return Track.start(server, user, self._run.source, bubblewrap=bubblewrap)


@contextmanager
def _tracks(run: Run) -> Iterator[_Tracks]:
    with ExitStack() as stack:
        yield _Tracks(run, stack)


def _remove(folder: Path) -> None:
    subprocess.run(["chmod", "-R", "u+rwX", str(folder)], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
