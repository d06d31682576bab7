"""The database of a simulation: the product's tables in memory, set up once and put back for each schedule.

Most of a schedule is reading, and much of it asks again for what nobody has changed since. So an answer is
kept until the next change, and a record is made once for the same row. What changes something always runs.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import apsw

from clawdforge.core.clock import SECOND
from clawdforge.core.models.budgets import BudgetRow
from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.migrations import migrate
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.rows import Codec, Value
from clawdforge.wire.base import Micros
from clawdforge.wire.budgets import BudgetPeriod, BudgetScope
from proofs.simulation.plans import APPS

EPOCH = 1_800_000_000
STATEMENTS = 512  # the most that apsw keeps: those of the last 512 uses, however often one of them was used
USES = 256  # then apsw is shown all of them; else the rare ones are prepared anew in every schedule
RECORDS = 4096


class SimDb(Db):
    """Belongs to one schedule after another. A schedule is one transaction, which the next one rolls back."""

    def __init__(self) -> None:
        super().__init__(
            apsw.Connection(":memory:", statementcachesize=STATEMENTS), _remember_records(Queries())
        )
        self._answers: dict[tuple[object, ...], Any] = {}
        self._changes = 0
        self._statements: dict[str, None] = {}
        self._uses = 0
        # Without it SQLite prepares many statements anew for each value: another plan might suit it better.
        self.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        migrate(self.connection, _Stopped())
        self._bound_apps()

    def _bound_apps(self) -> None:
        """Give every app a budget that is never used up: each turn holds something and gives it back."""
        for app in APPS:
            row = BudgetRow(
                app_name=app,
                budget_id=f"budget of {app}",
                scope=BudgetScope.APP,
                period=BudgetPeriod.TOTAL,
                max_tokens=2**50,
                share_tokens=1,
                max_cost=2**50,
                share_cost=1,
                warn_at=1.0,
                created_at=EPOCH * SECOND,
            )
            self.run(self.queries.budget.insert, self.queries.budget.values(row))

    def begin(self) -> None:
        """Put everything back to what a new server finds."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.connection.execute("BEGIN")
        self._answers.clear()

    def attempt(self, work: Callable[[], Any]) -> Any:
        """Do `work` as a whole: when it raises, what it has changed is taken back."""
        if self._uses > USES:
            self._keep_prepared()
        self.connection.execute("SAVEPOINT attempt")
        try:
            result = work()
        except BaseException:
            self.connection.execute("ROLLBACK TO attempt")
            self._answers.clear()
            raise
        finally:
            self.connection.execute("RELEASE attempt")
        return result

    def rows(
        self, sql: str, params: dict[str, Value], fits: Callable[[tuple[Any, ...]], bool] | None = None
    ) -> list[tuple[Any, ...]]:
        if fits is not None:
            return super().rows(sql, params, fits)
        key = ("rows", sql, *params.items())
        found = self._known(key)
        if found is None:
            self._use(sql)
            found = self._answers[key] = super().rows(sql, params)
        return list(found)

    def row(self, sql: str, params: dict[str, Value]) -> tuple[Any, ...] | None:
        key = ("row", sql, *params.items())
        found = self._known(key)
        if found is None:
            self._use(sql)
            found = self._answers[key] = (super().row(sql, params),)
        answer: tuple[Any, ...] | None = found[0]
        return answer

    def run(self, sql: str, params: dict[str, Value]) -> int:
        self._use(sql)
        return super().run(sql, params)

    def run_many(self, sql: str, params: Sequence[Mapping[str, Value]]) -> None:
        self._use(sql)
        super().run_many(sql, params)

    def _use(self, sql: str) -> None:
        self._uses += 1
        self._statements[sql] = None

    def _keep_prepared(self) -> None:
        """Let apsw take every statement in hand; without its values, none of them runs."""
        self._uses = 0
        for sql in self._statements:
            with suppress(apsw.BindingsError):
                self.connection.execute(sql, ())

    def _known(self, key: tuple[object, ...]) -> Any:
        """An answer that still holds. A statement that changes rows and answers makes its own answer old."""
        changes = self.connection.total_changes()
        if changes != self._changes:
            self._changes = changes
            self._answers.clear()
        return self._answers.get(key)


def _remember_records(queries: Queries) -> Queries:
    for codec in vars(queries).values():
        if isinstance(codec, Codec):
            codec.read = lru_cache(RECORDS)(codec.read)  # type: ignore[method-assign]
    return queries


class _Stopped:
    def now(self) -> Micros:
        return EPOCH * SECOND

    def steady(self) -> Micros:
        return 0
