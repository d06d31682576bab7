"""One-shot runs: one prompt, one answer, no session. Each is recorded as a row."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import FileRow, PauseRow, RunRow
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.budgets import NOTHING, UNREACHED, read_spending
from clawdforge.core.rules.pauses import check_pause
from clawdforge.core.rules.purses import reserve_for_run, settle_run
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.usage import bound_usage
from clawdforge.core.running.fair_slots import FairSlots
from clawdforge.core.running.membership import Membership
from clawdforge.wire.admin import RunRequest
from clawdforge.wire.base import Json
from clawdforge.wire.errors import (
    ForgeAPIError,
    InvalidRequest,
    LimitExceeded,
    Paused,
    RunFailed,
    Stopping,
    TurnTimedOut,
    UnknownFile,
)
from clawdforge.wire.message import estimate_tokens

STDERR_CHARS = 8192
END_SECS = 15.0
FAILED = "error"
TIMED_OUT = "timeout"
GONE = "stopped before it was done: the caller hung up, the operator paused it, or the server stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """The input of one run."""

    app: str
    run_id: str
    prompt: str
    model: str | None
    files: tuple[FileRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The output of one run. With `error` it failed; `words` is the program's own message about that."""

    result: Any = None
    stop_reason: str = "end_turn"
    error: str | None = None
    words: str = ""
    stderr: str = ""
    usage: Json | None = None  # as a turn has it; None where the program did not tell


class OneShot(Protocol):
    """A program that answers one prompt and ends."""

    @property
    def agent(self) -> str:
        """The name of the agent that it is, by which it can be paused."""
        ...

    async def run(self, order: RunOrder) -> RunOutcome:
        """No process is left when this returns, raises or is cancelled.

        Raises AgentNotInstalled or AgentStartFailed when the program could not be run at all.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunResult:
    result: Any
    duration_ms: int
    stop_reason: str


class RunService:
    """Runs do not use the pool of agents; they have their own limit, shared fairly between apps."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        program: OneShot,
        membership: Membership,
        *,
        max_runs: int,
        timeout_secs: float,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._program = program
        self._membership = membership
        self._timeout_secs = timeout_secs
        self._quotas = quotas
        self._slots = FairSlots(max_runs)
        self._in_flight: Counter[str] = Counter()
        self._heard: set[str] = set()  # runs whose prompt the program was given
        self._tasks: dict[asyncio.Task[RunResult], str] = {}
        self._stopping = False

    async def run(self, app: str, request: RunRequest, by: Principal | None = None) -> RunResult:
        """A caller that hangs up ends its run, since nobody could get the answer."""
        if self._stopping:
            raise Stopping
        task = asyncio.create_task(self._run(app, request, by))
        self._tasks[task] = app
        task.add_done_callback(self._tasks.pop)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not self._stopping:
                raise Paused(
                    "the operator has paused this and stopped the run; send it again later"
                ) from None
            if task.cancelled():
                raise Stopping(
                    "the server stopped before the run was done; try again when it is back"
                ) from None
            task.cancel()
            await asyncio.wait({task})  # its processes are killed first; nobody waits for an answer any more
            if not task.cancelled():
                task.exception()  # marks it as seen: the caller has gone
            raise

    @property
    def count(self) -> int:
        """How many are in flight here."""
        return len(self._tasks)

    async def stop(self, grace: float) -> None:
        """Refuse new runs, and give the present ones `grace` seconds to finish, and `END_SECS` to end."""
        self._stopping = True
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=END_SECS)

    async def cancel(self, pause: PauseRow) -> int:
        """End the runs that a pause concerns; how many they were."""
        if pause.agent not in ("", self._program.agent):
            return 0
        tasks = [task for task, app in self._tasks.items() if pause.app_name in ("", app)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return sum(task.cancelled() for task in tasks)

    async def _run(self, app: str, request: RunRequest, by: Principal | None) -> RunResult:
        agent = self._program.agent
        files = await self._store.read(app, lambda view: _read_needs(view, request, agent))
        limit = await self._store.read(app, self._admit)
        if limit is not None and self._in_flight[app] >= limit:
            raise LimitExceeded(f"this app may have {limit} runs in flight; try again later", retry_after=1)
        self._in_flight[app] += 1
        try:
            return await self._run_within_time(app, request, files, by)
        finally:
            self._in_flight[app] -= 1
            if not self._in_flight[app]:
                del self._in_flight[app]

    def _admit(self, view: View) -> int | None:
        """How many runs the app may have at the same time."""
        self._quotas.check_room(view)
        return self._quotas.max_turns(view)

    async def _run_within_time(
        self, app: str, request: RunRequest, files: tuple[FileRow, ...], by: Principal | None
    ) -> RunResult:
        order = RunOrder(app=app, run_id=new_id(), prompt=request.prompt, model=request.model, files=files)
        seconds = request.timeout_secs or self._timeout_secs
        row = RunRow(
            run_id=order.run_id,
            app_name=app,
            model=request.model,
            prompt=request.prompt,
            ok=False,
            stop_reason=FAILED,
            duration_ms=0,
            created_at=self._clock.now(),
        )
        began = time.monotonic()
        try:
            await self._reserve(app, order.run_id, by)
        except BaseException:  # the caller hung up, or the store did not answer: it may be on disk
            await self._give_back(app, order.run_id)
            raise
        failed: ForgeAPIError
        try:
            async with asyncio.timeout(seconds):
                outcome = await self._run_when_free(app, order)
        except TimeoutError:
            words = f"the run took longer than {seconds:g} s and was ended"
            failed = TurnTimedOut(words)
            outcome = RunOutcome(error=words, stop_reason=TIMED_OUT)
        except ForgeAPIError as error:
            failed = error
            outcome = RunOutcome(error=error.message, stop_reason=FAILED)
        except BaseException as error:  # the caller hung up, or something failed that nobody expected
            why = GONE if isinstance(error, asyncio.CancelledError) else f"the run could not be made: {error}"
            await self._record(replace(row, error=why, duration_ms=_elapsed_ms(began)), RunOutcome())
            raise
        else:
            words = f"{outcome.error}: {outcome.words}" if outcome.words else outcome.error or ""
            failed = RunFailed(outcome.error, detail=words)
        spent = _elapsed_ms(began)
        ended = replace(
            row,
            ok=outcome.error is None,
            stop_reason=outcome.stop_reason,
            duration_ms=spent,
            error=outcome.error,
        )
        if failed.code in UNREACHED:
            self._heard.discard(order.run_id)
        await self._record(ended, outcome)
        if outcome.error is not None:
            stderr = outcome.stderr or str(failed.extra.get("stderr", ""))
            failed.extra |= {
                "stderr": stderr[-STDERR_CHARS:],
                "duration_ms": spent,
                "stop_reason": outcome.stop_reason,
            }
            raise failed
        return RunResult(outcome.result, spent, outcome.stop_reason)

    async def _run_when_free(self, app: str, order: RunOrder) -> RunOutcome:
        await self._slots.take(app)
        try:
            await self._store.read(app, lambda view: check_pause(view, self._program.agent))
            self._heard.add(order.run_id)
            return await self._program.run(order)
        finally:
            self._slots.give_back(app)

    async def _reserve(self, app: str, run_id: str, by: Principal | None) -> None:
        """Hold what the run may use of budgets. Most apps have none: then nothing is written."""
        token_id, now = None if by is None else by.token_id, self._clock.now()
        if await self._store.read(app, lambda view: bool(view.budgets_for(token_id, ()))):
            node = self._membership.node
            await self._store.write(app, lambda tx: reserve_for_run(tx, run_id, token_id, now, node))

    async def _give_back(self, app: str, run_id: str) -> None:
        """What cannot be given back now is settled by the next start, or by `doctor --repair`."""
        now = self._clock.now()
        with suppress(ForgeAPIError):
            await self._store.write(app, lambda tx: settle_run(tx, run_id, NOTHING, now))

    async def _record(self, row: RunRow, outcome: RunOutcome) -> None:
        now, heard = self._clock.now(), row.run_id in self._heard
        self._heard.discard(row.run_id)
        spending = read_spending(bound_usage(outcome.usage)) if heard else NOTHING
        if spending.tokens is None:  # ended before it told: estimated from the text, as for turns
            tokens = estimate_tokens(row.prompt)
            spending = replace(spending, tokens=tokens, tokens_estimated=True)

        def work(tx: Tx) -> None:
            tx.add_run(row)
            settle_run(tx, row.run_id, spending, now)

        await self._store.write(row.app_name, work)


def parse_value(text: str) -> Any:
    """The text parsed as JSON; the text itself if it is not JSON that we can send on."""
    try:
        value = orjson.loads(text)
        orjson.dumps([[value]])
    except (orjson.JSONDecodeError, TypeError):
        return text
    return value


def _read_needs(view: View, request: RunRequest, agent: str) -> tuple[FileRow, ...]:
    check_pause(view, agent)
    if request.model is not None and (request.model.startswith("-") or "\0" in request.model):
        raise InvalidRequest("model: this cannot be the name of a model")
    rows = [view.file(token) for token in request.files or ()]
    found = tuple(row for row in rows if row is not None)
    if len(found) < len(rows):
        raise UnknownFile
    return found


def _elapsed_ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
