"""Who has had more than its share of the writing thread while other apps were about, and until when it waits.

The writer serves apps in turn, but a transaction that has begun comes to its end first, and one that holds
megabytes takes a tenth of a second. An app that always has the next one ready would meet each of the few
writes of a turn. So an app may have a part of the time, and a little more at once; beyond that its next job
waits, as long as others are about. Alone it may have all of it. And only whoever has had the most waits: a
few small writes take long too, where somebody else keeps the disk busy. Of such a commit an app has had no
more than what it wrote explains.
"""

from collections import OrderedDict
from typing import Final

SHARE: Final = 1 / 3
BURST_SECS: Final = 0.05
LONG_SECS: Final = 0.01
"""What the jobs of one transaction take beyond this counts three times: nobody comes in between."""

FREE_BYTES: Final = 64 * 1024
BYTES_A_SEC: Final = 16 << 20
"""What a transaction writes beyond that counts as if the disk took so much in a second. It takes more, but it
is moved from the log as well, and others' syncs wait for it: beside prompts of 2 MiB a turn took 85 ms (p99)
instead of 17, since nearly each of its commits met a large one."""

MOST_REST_SECS: Final = 1.0
ABOUT_SECS: Final = 1.0
MOST_KNOWN: Final = 1000

COMMIT_TIMES: Final = 16
"""So many times as long as its jobs computed a commit takes at most for what they wrote, beyond what any
takes: a crowd of small writes computes little, and is to be charged with its commits all the same."""

SLOWER: Final = 1.01
"""By so much the quickest commit is forgotten with each one: a disk may become slower."""


class CommitCosts:
    """How much of a commit is due to what was written in it, and not to what others did to disk and machine.

    Beside large commits, whose log is moved meanwhile, those of a few rows took 100 ms. Whoever wrote the
    rows was taken for the one who had most of the writer, and waited for it besides.
    """

    def __init__(self) -> None:
        self._least = float("inf")

    def due(self, commit: float, jobs: float) -> float:
        """Of a commit that took so long, after jobs that computed so long."""
        self._least = min(commit, self._least * SLOWER)
        return min(commit, self._least + COMMIT_TIMES * jobs)


class WriterShares:
    """Times are given, so that it can be tried without a clock."""

    def __init__(self) -> None:
        self._used: OrderedDict[str, tuple[float, float]] = (
            OrderedDict()
        )  # beyond its share, and when that was
        self._until: dict[str, float] = {}
        self._seen: OrderedDict[str, float] = OrderedDict()  # the last one at the end

    def see(self, app: str, now: float) -> None:
        """It has something to write."""
        self._seen[app] = now
        self._seen.move_to_end(app)
        if len(self._seen) > MOST_KNOWN:
            self._seen.popitem(last=False)

    def charge(self, app: str, jobs: float, commit: float, now: float, written: int = 0) -> None:
        """Its jobs in a transaction took so much CPU, and its part of the commit so long, up to now; so many
        bytes of it are its own.

        No more is remembered than one rest is for: who was noisy for a minute does not pay for another one.
        """
        if not self._are_others_about(app, now):
            self._used.pop(app, None)
            return
        cost = jobs + 2 * max(0.0, jobs - LONG_SECS) + commit
        cost += max(0.0, written - FREE_BYTES) / BYTES_A_SEC
        used = min(self._used_by(app, now) + cost, BURST_SECS + SHARE * MOST_REST_SECS)
        self._used.pop(app, None)
        most = max((self._used_by(other, now) for other in self._used), default=0.0)
        self._used[app] = (used, now)
        if len(self._used) > MOST_KNOWN:
            self._used.popitem(last=False)
        if used > BURST_SECS and used >= most:
            self._until[app] = now + (used - BURST_SECS) / SHARE
            self._until = {one: end for one, end in self._until.items() if end > now}

    def _used_by(self, app: str, now: float) -> float:
        used, at = self._used.get(app, (0.0, now))
        return max(0.0, used - SHARE * max(0.0, now - at))

    def rest_of(self, app: str, now: float) -> float:
        """For how many seconds it has to wait."""
        end = self._until.get(app)
        if end is None:
            return 0.0
        if end <= now or not self._are_others_about(app, now):
            del self._until[app]
            return 0.0
        return end - now

    def _are_others_about(self, app: str, now: float) -> bool:
        if len(self._seen) <= (app in self._seen):
            return False
        other = next(one for one in reversed(self._seen) if one != app)
        return now - self._seen[other] < ABOUT_SECS
