"""The server's metrics, counted from its commits and read from its store."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

import orjson

from clawdforge.core.histogram import Histogram, Sample
from clawdforge.core.log import LogService
from clawdforge.core.models.metrics import Metric
from clawdforge.core.models.rows import Commit, PauseRow
from clawdforge.core.ports import Store
from clawdforge.core.ports.telemetry import Telemetry
from clawdforge.core.rules.limits import BUDGET
from clawdforge.core.running.background import Background
from clawdforge.core.running.pool import AgentPool
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.changes import ChangeService
from clawdforge.core.services.courier import Courier
from clawdforge.core.services.timekeeper import Timekeeper
from clawdforge.wire.admin import WaitsFor
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome, TurnLimits, TurnState

STUCK_SECS: Final = 60.0
WIDTHS: Final = ("server", "app", "agent")
STOPPING: Final = (*TurnLimits.model_fields, BUDGET, "max_bytes")
COUNTED: Final = frozenset({EventType.TURN_STARTED, EventType.TURN_ENDED, EventType.BUDGET_WARNED})
UNENDED: Final = (TurnState.QUEUED, TurnState.RUNNING, TurnState.WAITING)


class MetricsService:
    def __init__(
        self,
        store: Store,
        events: LogService,
        changes: ChangeService,
        pool: AgentPool,
        supervisor: Supervisor,
        background: Background,
        loop_delays: Histogram,
        courier: Courier,
        timekeeper: Timekeeper,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._telemetry = telemetry
        self._courier = courier
        self._timekeeper = timekeeper
        self._supervisor = supervisor
        self._store = store
        self._log = events
        self._changes = changes
        self._pool = pool
        self._background = background
        self._loop_delays = loop_delays
        self._ended = {outcome.value: 0 for outcome in Outcome}
        self._stopped = Counter[str | None]()
        self._started = 0
        self._warned = 0
        self._events = 0
        self._watched: list[tuple[str, str, Callable[[], float]]] = []
        store.listen(self._count)

    def watch(self, name: str, about: str, read: Callable[[], float]) -> None:
        """A gauge of what core knows nothing of."""
        self._watched.append((name, about, read))

    async def read(self) -> list[Metric]:
        turns, sessions, pauses, apps = await self._store.read_system(
            lambda view: (view.turn_counts(), view.count_open_sessions(), view.pauses(), view.disk_of_apps())
        )
        stored = tuple(
            Sample(sum(forms[form] for forms in apps.values()), {"form": form.value}) for form in DiskForm
        )
        readers = self._log.readers + self._changes.readers
        paused = Counter(_width(pause) for pause in pauses)
        now = tuple(Sample(turns.get(state.value, 0), {"state": state.value}) for state in UNENDED)
        ended = tuple(Sample(count, {"outcome": outcome}) for outcome, count in self._ended.items())
        stopped = tuple(Sample(self._stopped[name], {"limit": name}) for name in STOPPING)
        healthy = self._store.health() is None
        waits = Counter(one.waits_for for one in self._supervisor.find_waiting(STUCK_SECS))
        stuck = tuple(Sample(waits[what], {"wait": what.value}) for what in WaitsFor)
        failed = tuple(Sample(count, {"task": task}) for task, count in self._background.failures.items())
        tries = tuple(Sample(count, {"outcome": word}) for word, count in self._courier.tries.items())
        told = {} if self._telemetry is None else self._telemetry.counts()
        telemetry = tuple(Sample(count, {"of": of, "outcome": how}) for (of, how), count in told.items())
        times = tuple(Sample(count, {"state": word}) for word, count in self._timekeeper.done.items())
        return [
            Metric("turns_started_total", "counter", "Turns that were started.", _single(self._started)),
            Metric("turns_ended_total", "counter", "Turns that ended, by outcome.", ended),
            Metric("turns_stopped_total", "counter", "Turns that were stopped by a limit.", stopped),
            Metric("budget_warnings_total", "counter", "Warnings of budgets.", _single(self._warned)),
            Metric("webhook_tries_total", "counter", "Tries to deliver webhooks, by outcome.", tries),
            Metric("telemetry_total", "counter", "What is meant for a collector, by outcome.", telemetry),
            Metric("schedule_occurrences_total", "counter", "Times of schedules, by their state.", times),
            Metric("turns", "gauge", "Turns that have not ended, by state.", now),
            Metric("agents_live", "gauge", "Agent processes that are alive.", _single(self._pool.live)),
            Metric("agents_waiting", "gauge", "Turns that wait for room.", _single(self._pool.waiting)),
            Metric("places_taken", "gauge", "Places for agents that are taken.", _single(self._pool.taken)),
            Metric("sessions_open", "gauge", "Open sessions with retention ttl.", _single(sessions)),
            Metric("events_appended_total", "counter", "Events written to the log.", _single(self._events)),
            Metric("readers", "gauge", "Open readers of event streams.", _single(readers)),
            *(Metric(name, "gauge", about, _single(read())) for name, about, read in self._watched),
            Metric(
                "commit_seconds", "histogram", "Time of a commit, its sync to disk included.",
                self._store.commit_times.samples(),
            ),
            Metric("sessions_stuck", "gauge", "Sessions that wait for one thing for a minute.", stuck),
            Metric("tasks", "gauge", "Tasks of the event loop.", _single(len(asyncio.all_tasks()))),
            Metric("task_failures_total", "counter", "Failures of tasks that run beside requests.", failed),
            Metric(
                "writer_job_seconds", "histogram", "Time for which one job kept the store's writer.",
                self._store.job_times.samples(),
            ),
            Metric(
                "checkpoint_seconds", "histogram", "Time to move the write-ahead log into the database.",
                self._store.checkpoint_times.samples(),
            ),
            Metric(
                "loop_delay_seconds", "histogram", "Time until the event loop gave a sign of life.",
                self._loop_delays.samples(),
            ),
            Metric(
                "pauses", "gauge", "Pauses in force, by what they stop.",
                tuple(Sample(paused[width], {"of": width}) for width in WIDTHS),
            ),
            Metric("stored_bytes", "gauge", "Bytes that all apps store, by form.", stored),
            Metric("store_writable", "gauge", "1 when the store can be written.", _single(healthy)),
        ]  # fmt: skip

    def _count(self, commit: Commit) -> None:
        self._events += len(commit.events)
        if COUNTED.isdisjoint(commit.types):
            return
        for event in commit.events:
            if event.type == EventType.TURN_ENDED:
                ended = orjson.loads(event.data)
                self._ended[ended["outcome"]] += 1
                self._stopped[ended.get("stopped_by")] += 1
            elif event.type == EventType.TURN_STARTED:
                self._started += 1
            elif event.type == EventType.BUDGET_WARNED:
                self._warned += 1


def _width(pause: PauseRow) -> str:
    """What a pause stops; one app's use of one agent is a pause of the app."""
    return "app" if pause.app_name else "agent" if pause.agent else "server"


def _single(value: float) -> tuple[Sample, ...]:
    return (Sample(value),)
