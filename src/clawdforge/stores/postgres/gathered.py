"""The statements of one batch: what its jobs read is asked for at once, what they write is sent at its end.

A job sees what it and those before it have written, because the rows that are known are changed with it. What
only the database could answer, after a write that waits, is not answered: the job is run again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from clawdforge.stores.postgres.appended import NOTHING, Runs, to_columns, to_runs
from clawdforge.stores.postgres.asked import Asked
from clawdforge.stores.postgres.effects import Effects, Kind, Waits, is_read, tables_of
from clawdforge.stores.postgres.functions import Functions, Write
from clawdforge.stores.postgres.known import Known
from clawdforge.stores.postgres.ordinary import Found, Ordinary
from clawdforge.stores.postgres.statements import PgDb
from clawdforge.stores.postgres.texts import is_plain
from clawdforge.stores.sqlite.packs import EventRow
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import NewEvents

MOST_WRITES: Final = 1000
"""That are sent at once: Postgres selects 1,664 things at most, and takes 32,767 arguments."""


class Dependent(BaseException):
    """The job needs an answer that the database has only after what waits was written."""


class Step(NamedTuple):
    """One statement that waits; or events that do, which have none.

    It comes with what Postgres will get, unless it will most likely be one of many that are sent as one.
    """

    waits: Waits
    params: Mapping[str, Value]
    sql: str = ""
    bound: tuple[str, Sequence[Any]] | None = None
    events: Runs = NOTHING


EVENTS: Final = Waits(Kind.OTHER, frozenset({"events"}), must=False)
BROUGHT: Final = Waits(Kind.OTHER, frozenset({"events", "session_bytes", "app_bytes"}), must=False)
"""What a session began with, which a trigger counts."""


SUMMED: Final = (Kind.BYTES_ADDED, Kind.HEAD_MOVED)
"""Of all sessions together they are columns of one statement."""


class Gathered:
    """As `Statements` says, for the jobs of one batch, one after another."""

    def __init__(self, db: PgDb, functions: Functions, ordinary: Ordinary, effects: Effects) -> None:
        self.queries: Queries = db.queries
        self.unpack: Callable[[int, int, int, bytes], tuple[EventRow, ...]] = db.unpack
        self._db = db
        self._functions = functions
        self._ordinary = ordinary
        self._effects = effects
        self._known = Known(db.queries)
        self._light: set[tuple[str, str]] = set()
        self._heavy: set[tuple[str, str]] = set()
        self._steps: list[Step] = []
        self._touched: set[str] = set()
        self._begun_at = 0
        self._app = ""
        self._is_locked = False
        self._may_be_locked = False  # also after a statement that failed

    def learn(self, asked: Sequence[Asked]) -> None:
        """Read at once what jobs will ask for that begin with these questions."""
        heavy: set[tuple[str, str]] = set()
        light: set[tuple[str, str]] = set()
        for one in asked:
            app, session_id = one.params.get("app"), one.params.get("session")
            if is_plain(app) and is_plain(session_id):
                (light if one.sql == self._ordinary.state else heavy).add((str(app), str(session_id)))
        self._learn(self._ordinary.heavy, heavy - self._heavy)
        self._learn(self._ordinary.light, light - heavy - self._light - self._heavy)

    def begin_job(self, app: str) -> None:
        self._app = app
        self._begun_at = len(self._steps)
        self._known.begin_job()

    def undo_job(self) -> None:
        del self._steps[self._begun_at :]
        self._touched = {table for step in self._steps for table in step.waits.tables}
        self._known.undo_job()

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> Found:
        if fits is not None:  # a page is read from a cursor, for which there must be a transaction
            raise Dependent
        found = self._known.find(sql, params)
        if found is None and not self._steps:
            self.learn([Asked(sql, params)])
            found = self._known.find(sql, params)
        return self._read(sql, params) if found is None else found

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None:
        return next(iter(self.rows(sql, params)), None)

    def run(self, sql: str, params: Mapping[str, Value]) -> int:
        """One row, it is said; whoever depends on that sends it with `must`."""
        waits = self._effects.look_at(sql)
        if waits is None or len(self._steps) >= MOST_WRITES:
            raise Dependent
        bound = None if waits.kind in SUMMED else self._db.bind(sql, params)
        if bound is not None and not self._functions.can_take(bound[0], must=waits.must):
            raise Dependent
        self._wait(Step(waits, params, sql, bound))
        self._known.change(waits.kind, waits.tables, self._app, dict(params))
        return 1

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> None:
        for some in params:
            self.run(sql, some)

    def add_events(self, runs: Sequence[NewEvents]) -> None:
        waits = BROUGHT if any(run.first <= 0 for run in runs) else EVENTS
        self._wait(Step(waits, {}, events=to_runs(runs)))
        self._known.change(waits.kind, waits.tables, self._app, {})

    def write(self) -> None:
        """Send all that waits, and give the lock back."""
        if not self._steps:
            if self._may_be_locked:
                self._functions.give_lock_back()
            return
        sessions = Counter(
            step.params.get("session") for step in self._steps if "sessions" in step.waits.tables
        )
        events: list[Runs] = []
        counted: Counter[tuple[Value, Value]] = Counter()
        heads: list[tuple[Value, ...]] = []
        writes: list[Write] = []
        for step in self._steps:
            params = step.params
            if not step.sql:
                events.append(step.events)
            elif step.waits.kind is Kind.BYTES_ADDED:
                counted[params["session"], params["app"]] += int(params["bytes"] or 0)
            elif step.waits.kind is Kind.HEAD_MOVED and sessions[params["session"]] == 1:
                names = ("session", "app", "head", "written", "at")
                heads.append(tuple(params.get(name) for name in names))
            else:
                writes.append(Write(*(step.bound or self._db.bind(step.sql, params)), step.waits.must))
        self._functions.send(writes, to_columns(events, counted, heads), is_locked=self._is_locked)

    def _wait(self, step: Step) -> None:
        self._steps.append(step)
        self._touched |= step.waits.tables

    def _read(self, sql: str, params: dict[str, Value]) -> Found:
        tables = tables_of(sql)
        if not is_read(sql) or not tables.isdisjoint(self._touched):
            raise Dependent
        if not self._is_locked:
            self._may_be_locked = True
            self._functions.take_lock()
            self._is_locked = True
        found = self._db.rows(sql, params)
        self._known.keep((sql, tuple(params.items())), found, tables)
        return found

    def _learn(self, bundle: Any, wanted: set[tuple[str, str]]) -> None:
        if not wanted:
            return
        self._may_be_locked = True
        answers = self._functions.ask(bundle, sorted(wanted), is_locked=self._is_locked)
        self._is_locked = True
        for answer in answers:
            self._known.learn(answer)
        (self._heavy if bundle is self._ordinary.heavy else self._light).update(wanted)
