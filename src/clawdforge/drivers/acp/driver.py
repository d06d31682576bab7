"""The driver for agents that speak ACP over stdio: a live process, one session in it, prompts one by one."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.agents import Answer, Ask, Launch, Verdict
from clawdforge.core.pacing.pace import AppPace, Pace
from clawdforge.core.ports import Capability, Sink
from clawdforge.drivers.acp.client import ClientSide
from clawdforge.drivers.acp.controls import SessionControls
from clawdforge.drivers.acp.failures import Failures, is_login_missing
from clawdforge.drivers.acp.files import WorkspaceFiles
from clawdforge.drivers.acp.handshake import STATE_KINDS, Handshake, LoadLost, OpenedSession, Replay
from clawdforge.drivers.acp.limits import AcpLimits
from clawdforge.drivers.acp.preparing import prepare
from clawdforge.drivers.acp.prices import Prices
from clawdforge.drivers.acp.prompt import RunningPrompt, make_params
from clawdforge.drivers.acp.stdio import StdioPipe
from clawdforge.drivers.acp.terminals import Terminals
from clawdforge.drivers.acp.updates import read_message, update_in, word_of
from clawdforge.drivers.acp.usage import UsageMeter
from clawdforge.drivers.acp.worker_watch import WorkerWatch
from clawdforge.drivers.folders.home_lock import run_to_end
from clawdforge.drivers.folders.ownership import Ownership
from clawdforge.drivers.processes.policy import Policy
from clawdforge.drivers.processes.process import AgentProcess, has_failed
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.jsonrpc.ndjson import explain_lost_line
from clawdforge.jsonrpc.rpc import Connection, Disconnected, RpcError
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentAuthRequired, AgentError, AgentFailed, AgentStartFailed
from clawdforge.wire.quirks import Quirks

log = logging.getLogger(__name__)

LAST_WORDS: Final = 500
EXIT_SECONDS: Final = 2.0


class AcpDriver:
    """Starts agents. `operator_env` is the server's environment; an agent sees only a part of it."""

    capabilities: Final = frozenset(Capability)

    def __init__(
        self,
        spawner: Spawner,
        operator_env: Mapping[str, str],
        limits: AcpLimits | None = None,
        *,
        operator_home: Path | None = None,
        prices: Prices | None = None,
        ownership: Ownership | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._ownership = ownership
        self._pace = pace or Pace()
        self._prices = prices or Prices.read()
        self._failures = Failures.read()
        self._spawner = spawner
        self._operator_env = operator_env
        self._limits = limits or AcpLimits()
        self._operator_home = operator_home or Path.home()

    async def open(self, launch: Launch, sink: Sink) -> "AcpAgent":
        """Start the agent. A session that cannot be loaded becomes a new one; `how` and `note` say so."""
        try:
            agent = await self._open(launch, sink)
        except LoadLost as lost:
            agent = await self._open(replace(launch, agent_session_id=None), sink)
            agent.note = str(lost)
        if agent.note:
            log.warning("%s: %s", launch.agent.name, agent.note, extra={"session_id": launch.session_id})
        return agent

    async def _open(self, launch: Launch, sink: Sink) -> "AcpAgent":
        inside = self._spawner.containment.choose(launch.agent.sandbox)
        look_up = partial(prepare, launch, self._operator_env, self._operator_home, inside, self._ownership)
        prepared = await run_to_end(look_up)  # it makes a folder in the home, whose lock is held
        pace = self._pace.of(launch.app)

        async def spawn(argv: tuple[str, ...], beside: AgentProcess | None = None) -> AgentProcess:
            await pace.enter()  # some milliseconds of the loop, and they come in crowds
            # A terminal starts at once: a cancel and the copy of the home count on its start being short.
            async with pace.start() if beside is None else nullcontext():
                return await self._spawner.spawn(
                    argv,
                    cwd=launch.cwd,
                    home=launch.home,
                    env=prepared.env,
                    tag=launch.session_id,
                    app=launch.app,
                    needs=prepared.needs,
                    readable=prepared.readable,
                    writable=prepared.writable,
                    sandbox=launch.agent.sandbox,
                    policy=Policy.of(launch.agent),
                    beside=beside,
                    identity=launch.workspace_identity,
                    runs_as=prepared.runs_as,
                )

        process = await spawn(launch.agent.command)
        terminals = Terminals(partial(spawn, beside=process), prepared.files, launch.cwd)
        tables = (self._prices, self._failures)
        agent = AcpAgent(launch, sink, process, terminals, prepared.files, self._limits, *tables, pace)
        try:
            await agent.start()
        except BaseException:
            await agent.close()
            raise
        return agent


class AcpAgent:
    """One agent, ready for prompts of one session.

    What it says outside of a prompt goes to the sink it was opened with. When a sink fails, the connection
    ends with that failure, and so does the prompt.
    """

    def __init__(
        self,
        launch: Launch,
        sink: Sink,
        process: AgentProcess,
        terminals: Terminals,
        files: WorkspaceFiles,
        limits: AcpLimits,
        prices: Prices,
        failures: Failures,
        pace: AppPace,
    ) -> None:
        self.agent_session_id = ""
        self.how: Literal["new", "loaded", "resumed"] = "new"
        self.remembered: list[str] | None = []
        self.answered: str | None = None
        self.mcp_servers: tuple[str, ...] = ()
        self.note: str | None = None  # why the start differs from what was requested, in its words
        self._launch = launch
        self._name = launch.agent.name
        self._sink = sink
        self._process = process
        self._terminals = terminals
        self._limits = limits
        self._client = ClientSide(files, terminals, self._ask)
        self._quirks = Quirks.model_validate(launch.agent.quirks)
        self._prices = prices
        self._usage = UsageMeter(self._quirks, prices)
        self._failures = failures.with_words(self._quirks.failures)
        self._replay: Replay | None = None
        self._turn: RunningPrompt | None = None
        self._prompted: RunningPrompt | None = None
        self._spoiled = False
        self._answered_at: float | None = None
        self._default_model: str | None = None
        self._closing: asyncio.Task[None] | None = None
        self._login_methods: list[str] = []
        pipe = StdioPipe(process.stdout, process.stdin)
        most, gatherer = limits.max_line_bytes, lambda: self._turn
        self._connection = Connection(pipe, self, pace, max_line_bytes=most, gatherer=gatherer)
        silent_secs = limits.orphaned_secs if self._quirks.adapter else None
        self._worker = WorkerWatch(process, self._connection, silent_secs)

    @property
    def alive(self) -> bool:
        """Whether it can take a prompt. An agent whose last prompt got no answer cannot."""
        running = self._process.returncode is None and self._connection.is_open
        return running and self._closing is None and not self._spoiled

    async def start(self) -> None:
        """Shake hands and open the session."""
        handshake = Handshake(self._launch, self._call_during_start)
        try:
            await handshake.initialize()
            self._login_methods = handshake.login_methods
            opened = await self._open_session(handshake)
        except RpcError as error:
            raise self._explain_refusal(error) from error
        self.agent_session_id, self.how = opened.session_id, opened.how
        if opened.how != "new":
            self._usage = UsageMeter(self._quirks, self._prices, self._launch.counter)
        notes = [opened.note] if opened.note else []
        self.mcp_servers, unused = handshake.list_servers()
        notes += [f"it cannot use MCP servers over HTTP: {', '.join(unused)}"] if unused else []
        controls = SessionControls(opened.session_id, opened.settings, self._call_during_start)
        self._default_model = controls.model()
        if self._launch.model:
            notes.append(await controls.set_model(self._launch.model) or "")
        if self._launch.plan_mode and not await controls.set_plan_mode(on=True):
            notes.append("it has no plan mode")
        self.note = "; ".join(filter(None, notes)) or None

    async def prompt(
        self, text: str, sink: Sink, *, preface: str = "", traceparent: str | None = None
    ) -> Answer:
        if self._prompted is not None:
            raise AgentFailed(f"{self._name} is busy with another prompt")
        turn = self._prompted = RunningPrompt(sink, self._limits.max_turn_bytes, self._quirks.failed_meta)
        answers: list[tuple[Json, int]] = []

        async def emit_answer() -> None:
            message, size = answers[0]
            await turn.answer(read_message(message), size)
            self._turn = None  # what comes after the answer is not part of the turn

        async def keep_answer(message: Json, size: int) -> None:
            answers.append((message, size))
            self._answered_at = asyncio.get_running_loop().time()
            if not self._quirks.late_ms:
                await emit_answer()

        try:
            await self._connection.catch_up()
            self._replay, self._turn = None, turn
            self._usage.start_prompt()
            turn.sent.set()
            params = make_params(self.agent_session_id, (preface, text), traceparent)
            try:
                with self._worker.during_prompt():
                    result = await self._connection.request("session/prompt", params, on_answer=keep_answer)
            finally:
                if answers and self._turn is turn:
                    await asyncio.sleep(self._quirks.late_ms / 1000)
                    await emit_answer()
        except RpcError as error:
            raise self._explain_failure(error.code, error.describe(), turn) from error
        except Disconnected as error:
            if self._worker.is_lost:
                begun, stderr = turn.has_begun, self.stderr_tail()
                raise self._worker.explain(self._name, begun=begun, stderr=stderr) from error
            raise AgentFailed(await self._describe_end(error), stderr=self.stderr_tail()) from error
        finally:
            self._spoiled = self._spoiled or not answers
            self._turn = self._prompted = None
            turn.sent.set()
            turn.end()
            self._client.end_turn()
        return self._read_answer(result, turn)

    def _read_answer(self, result: Json, turn: RunningPrompt) -> Answer:
        stop_reason = result.get("stopReason")
        if turn.cancelled and self._quirks.end_turn_on_cancel:
            stop_reason = "cancelled"
        if turn.failure is not None and stop_reason == "end_turn":
            raise self._explain_failure(0, turn.failure.strip() or "the turn has failed", turn)
        return Answer(
            stop_reason=stop_reason if isinstance(stop_reason, str) else "end_turn",
            usage=self._usage.usage_of(result, self._model, cancelled=stop_reason == "cancelled"),
        )

    def _explain_failure(self, code: int, words: str, turn: RunningPrompt) -> AgentError:
        failure = self._failures.judge(code, words, SystemClock().now() / SECOND)
        self._spoiled = self._spoiled or failure.is_broken
        return failure.make_error(f"{self._name}: {words}", begun=turn.has_begun, stderr=self.stderr_tail())

    @property
    def _model(self) -> str | None:
        return self._launch.model or self._default_model

    async def cancel(self) -> None:
        turn = self._prompted
        if turn is None:
            return
        turn.cancelled = True
        with suppress(Disconnected, TimeoutError):
            async with asyncio.timeout(self._limits.reply_timeout):
                await turn.sent.wait()
                if turn is self._prompted:
                    await self._connection.notify("session/cancel", {"sessionId": self.agent_session_id})
        turn.end()
        self._client.end_turn()
        await self._terminals.end_all()

    @contextmanager
    def pause(self) -> Iterator[None]:
        with self._process.pause(), self._terminals.pause():
            yield

    async def close(self) -> None:
        if self._closing is None or has_failed(self._closing):
            self._closing = asyncio.create_task(self._close(), name=f"close {self._name}")
        await asyncio.shield(self._closing)

    def stderr_tail(self) -> str:
        return self._process.stderr_tail()

    async def take_message(self, message: Json, size: int) -> None:
        """Pass a message on: to the running prompt, to the replay of a load, or to the session's own sink."""
        if message["method"] == "session/request_permission":
            return
        update = update_in(message)
        if update is not None and self._usage.observe(update) and self._turn is not None:
            self._turn.note_usage(self._usage.used_so_far(self._model))
        if self._turn is not None:
            await self._turn.emit(read_message(message), size)
        elif self._replay is not None and update is not None and word_of(update) not in STATE_KINDS:
            self._replay.take(update)
        elif not self._spoiled:
            await self._sink.emit(read_message(message), size)

    async def answer_request(self, method: str, params: Json) -> Json:
        return await self._client.answer(method, params)

    async def report_lost_line(self, size: int) -> None:
        reason = explain_lost_line(self._limits.max_line_bytes)
        if self._turn is not None:
            await self._turn.report_loss(size, reason)
        else:
            await self._sink.report_truncation(size, reason)

    async def _ask(self, request: Ask) -> Verdict:
        if self._turn is not None:
            return await self._turn.ask(request)
        return await self._sink.ask(request)

    async def _open_session(self, handshake: Handshake) -> OpenedSession:
        if self._launch.agent_session_id is None:
            return await handshake.open()
        self._replay = Replay()
        try:
            opened = await handshake.open()
        except AgentAuthRequired:
            raise
        except AgentStartFailed as error:
            raise LoadLost(f"it ended while it was loading its session: {error.message}") from error
        if opened.how == "new":
            self._replay = None
        elif opened.how == "resumed" and not self._quirks.replays_on_resume:
            self.remembered = None
        else:
            self.remembered, self.answered = self._replay.texts(), self._replay.answer()
        return opened

    async def _call_during_start(self, method: str, params: Json) -> Json:
        """Send a request of the start. Raises RpcError when refused, AgentStartFailed when nothing comes."""
        try:
            async with asyncio.timeout(self._limits.start_timeout):
                return await self._connection.request(method, params)
        except RpcError as error:
            if is_login_missing(error.code, error.describe()):
                raise self._explain_refusal(error) from error
            raise
        except TimeoutError as error:
            seconds = f"{self._limits.start_timeout:g} s"
            words = f"{self._name} did not answer {method} within {seconds}{self._quote_last_words()}"
            raise AgentStartFailed(words, stderr=self.stderr_tail()) from error
        except Disconnected as error:
            words = await self._describe_end(error) + self._process.hint_at_hidden()
            raise AgentStartFailed(words, stderr=self.stderr_tail()) from error

    def _explain_refusal(self, error: RpcError) -> AgentError:
        """Of the start: a login that is missing is told apart from all else."""
        words = f"{self._name}: {error.describe()}"
        if is_login_missing(error.code, error.describe()):
            ways = f" ({', '.join(self._login_methods)})" if self._login_methods else ""
            keys = " or ".join(self._launch.agent.keys[:2]) or "its key"
            hint = f"log in with its own program, or set {keys} in the server's environment"
            return AgentAuthRequired(f"{words}; it is not signed in{ways}: {hint}", stderr=self.stderr_tail())
        return AgentStartFailed(words, stderr=self.stderr_tail())

    async def _describe_end(self, error: Disconnected) -> str:
        """How it ended, with its exit code if that comes in time, and its last words."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), EXIT_SECONDS)
        code = self._process.returncode
        how = f"{self._name}: {error}" if code is None else f"{self._name} exited with code {code}"
        return f"{how}{self._quote_last_words()}"

    def _quote_last_words(self) -> str:
        words = (self.stderr_tail().strip() or self._connection.garbage())[-LAST_WORDS:]
        return f"; it said: {words}" if words else ""

    def _secs_until_at_rest(self) -> float:
        """How long to wait until the agent has surely written its memory of the last answer."""
        if self._answered_at is None:
            return 0.0
        return self._answered_at + self._quirks.settle_ms / 1000 - asyncio.get_running_loop().time()

    async def _close(self) -> None:
        if self._prompted is not None:
            self._prompted.end()
        elif self._secs_until_at_rest() > 0 and self._process.returncode is None:
            await asyncio.sleep(self._secs_until_at_rest())
        try:
            await self._terminals.close()
        finally:
            await self._process.close()
            await self._connection.close()
