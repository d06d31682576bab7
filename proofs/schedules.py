"""Schedules: their times come while the server is killed and its clock is set; each is one turn."""

import asyncio
import time
from collections import Counter
from typing import Any

from proofs.kit.client import PAUSE, Client
from proofs.kit.clock import Clock
from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, zygote

SHORT, FULL = 40, 1000
STEPS_SHORT, STEPS = 12, 60
MINUTE = 60
EVERY = 10 * MINUTE
"""The distance of a schedule's times; a tenth of all schedules are due in each minute."""
OF_AN_APP = 200
NEW_SESSIONS = 10
"""One schedule in so many makes a new session each time; the others share the session of their app."""
JUMPS = 4
"""In one step of so many the clock is set, ahead and back in turn, instead of going on by a minute."""
KILLS = 3
SETTLE_SECS = 120.0


def prove(run: Run) -> None:
    clock = Clock(run.folder / "clock")
    with (
        zygote(run.source) as made,
        Server(run.folder, made, source=run.source, clock=clock.path) as server,
    ):
        server.start()
        asyncio.run(_Play(run, server, clock).play())


class _App:
    """A tenant with its schedules: by id, the minute of each in ten, and whether it skips what was missed."""

    def __init__(self, server: Server, number: int) -> None:
        self.client = Client(server.port, server.token(f"proof-{number}"))
        self.schedules: dict[str, tuple[int, bool]] = {}
        self.session = ""
        self.poked = ""

    async def furnish(self, count: int, run: Run) -> None:
        self.session = await self.client.session(retention="keep")
        for number in range(count):
            minute, skips = run.random.randrange(10), run.random.randrange(2) == 0
            body: dict[str, Any] = {
                "prompt": f"echo {number}",
                "cron": f"{minute}-59/10 * * * *",
                "overlap": "queue",
                "missed": "skip" if skips else "run_once",
                "title": str(number),
            }
            if number % NEW_SESSIONS == 0:
                body["session"] = {"agent": "scripted", "retention": "keep"}
            else:
                body["session_id"] = self.session
            made = await self.client.repeat("POST", "/schedules", body)
            self.schedules[made["schedule"]["schedule_id"]] = minute, skips
        yearly = {"prompt": "echo", "cron": "0 0 1 1 *", "session_id": self.session, "title": "poke"}
        self.poked = (await self.client.repeat("POST", "/schedules", yearly))["schedule"]["schedule_id"]

    async def poke(self) -> None:
        """A change wakes the timekeeper, which else would notice a clock that was set a little later."""
        await self.client.repeat("PATCH", f"/schedules/{self.poked}", {"title": "poke"})

    async def pages(self, path: str, name: str) -> list[Any]:
        found: list[Any] = []
        cursor = ""
        while True:
            page = await self.client.repeat("GET", f"{path}?limit=1000{cursor}")
            found += page[name]
            if page["next"] is None:
                return found
            cursor = f"&cursor={page['next']}"


class _Play:
    def __init__(self, run: Run, server: Server, clock: Clock) -> None:
        self._run = run
        self._server = server
        self._clock = clock
        self._apps = [_App(server, number) for number in range(max(2, -(-run.size // (OF_AN_APP - 1))))]
        self._kills = self._ahead = self._back = 0
        self._counts: Counter[str] = Counter()

    async def play(self) -> None:
        share, rest = divmod(self._run.size, len(self._apps))
        await asyncio.gather(
            *(app.furnish(share + (number < rest), self._run) for number, app in enumerate(self._apps))
        )
        steps = STEPS_SHORT if self._run.short else STEPS
        for number in range(steps):
            await self._step(number)
            self._run.progress(f"{number + 1} of {steps} steps, {self._kills} kills")
        self._go_past_all_that_was_shown()
        await self._settle()
        for app in self._apps:
            await self._check(app)
        self._run.figure(
            schedules=self._run.size,
            apps=len(self._apps),
            kills=self._kills,
            clock_set_ahead=self._ahead,
            clock_set_back=self._back,
            times=self._counts["times"],
            turns=self._counts["turns"],
            turns_in_new_sessions=self._counts["new"],
            missed=self._counts["missed"],
        )

    def _go_past_all_that_was_shown(self) -> None:
        """To the beginning of a minute: the clock goes on, and no time may come between two looks."""
        now = self._clock.now()
        then = max(int(self._clock.latest), int(now)) + MINUTE
        self._clock.move(then - then % MINUTE + MINUTE - int(now))

    async def _step(self, number: int) -> None:
        chance = self._run.random
        self._move(number)
        waiting = asyncio.create_task(self._settle())
        if chance.randrange(KILLS) == 0:
            await asyncio.sleep(chance.random() * 0.3)
            if chance.randrange(2):
                self._move(chance.randrange(2 * JUMPS))  # in the middle of what is under way
            await asyncio.to_thread(self._server.kill)
            self._kills += 1
            await asyncio.to_thread(self._server.start)
        await waiting

    def _move(self, number: int) -> None:
        chance = self._run.random
        if (number + 1) % JUMPS:
            self._clock.move(MINUTE)
        elif number // JUMPS % 2 == 0:
            self._ahead += 1
            self._clock.move(chance.randrange(2, 45) * MINUTE)
        else:
            self._back += 1
            self._clock.move(-chance.randrange(1, 20) * MINUTE)

    async def _settle(self) -> None:
        """Until nothing is due any more."""
        end = time.monotonic() + SETTLE_SECS
        for app in self._apps:
            await app.poke()
            while True:
                rows = await app.pages("/schedules", "schedules")
                due = [
                    row for row in rows if row["next_at"] is not None and row["next_at"] <= self._clock.now()
                ]
                if not due:
                    break
                if time.monotonic() > end:
                    raise Stuck(f"{len(due)} schedules are due, and nobody runs them")
                await asyncio.sleep(PAUSE)
                await app.poke()

    async def _check(self, app: _App) -> None:
        """Each time is in the history, or counted by a later one; each that was submitted is one turn."""
        check = self._run.check
        claimed: Counter[tuple[str, int]] = Counter()
        for schedule_id, (minute, skips) in app.schedules.items():
            rows = await app.pages(f"/schedules/{schedule_id}/history", "occurrences")
            claimed.update(
                (row["session_id"], row["turn_index"]) for row in rows if row["state"] == "submitted"
            )
            states = {row["state"] for row in rows}
            allowed = {"submitted", "missed"} if skips else {"submitted"}
            check(states <= allowed, f"schedule {schedule_id} has {states - allowed}")
            planned = Counter(row["planned_at"] for row in rows)
            check(max(planned.values(), default=1) == 1, f"schedule {schedule_id} has a time twice")
            covered = {row["planned_at"] - n * EVERY for row in rows for n in range(row["missed"] + 1)}
            made = await app.client.repeat("GET", f"/schedules/{schedule_id}")
            first = made["schedule"]["created_at"]
            wanted = {at for at in times(minute, first, int(self._clock.latest)) if at > first}
            check(wanted <= covered, f"schedule {schedule_id} has forgotten {sorted(wanted - covered)[:3]}")
            odd = {at for at in planned if at % EVERY != minute * MINUTE}
            check(not odd, f"schedule {schedule_id} was run at {sorted(odd)[:3]}")
            self._counts["times"] += len(wanted)
            self._counts["missed"] += sum(row["missed"] + (row["state"] == "missed") for row in rows)
        await self._compare(app, claimed)

    async def _compare(self, app: _App, claimed: Counter[tuple[str, int]]) -> None:
        check = self._run.check
        twice = [turn for turn, count in claimed.items() if count > 1]
        check(not twice, f"several times claim one turn: {twice[:3]}")
        sessions = {str(row["session_id"]) for row in await app.pages("/sessions", "sessions")}
        wanted = {session for session, _ in claimed} | {app.session}
        check(
            sessions == wanted,
            f"{len(sessions - wanted)} sessions too many, {len(wanted - sessions)} too few",
        )
        for session in sessions:
            turns = {(session, int(turn["turn_index"])) for turn in await app.client.wait_ended(session)}
            mine = {turn for turn in claimed if turn[0] == session}
            check(
                turns == mine,
                f"session {session}: {len(turns - mine)} turns too many, {len(mine - turns)} lost",
            )
            self._counts["turns"] += len(turns)
            self._counts["new"] += len(turns) if session != app.session else 0


def times(minute: int, first: int, last: int) -> range:
    """The times of a schedule from the first moment to the last, counted without its cron."""
    begin = first - first % EVERY + minute * MINUTE
    return range(begin, last + 1, EVERY)
