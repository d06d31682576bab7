"""The driver for agents that speak ACP over stdio: a live process, one session in it, prompts one by one."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from clawdforge.core.model import Answer, Ask, Launch, Verdict
from clawdforge.core.ports import Capability, Sink
from clawdforge.drivers.acp.client import ClientSide
from clawdforge.drivers.acp.controls import SessionControls
from clawdforge.drivers.acp.files import WorkspaceFiles
from clawdforge.drivers.acp.handshake import STATE_KINDS, Handshake, LoadLost, Opened, Replay
from clawdforge.drivers.acp.ndjson import MAX_LINE_BYTES
from clawdforge.drivers.acp.prices import Prices
from clawdforge.drivers.acp.rpc import Connection, Disconnected, RpcError, StdioPipe
from clawdforge.drivers.acp.terminals import Terminals
from clawdforge.drivers.acp.turn import RunningTurn
from clawdforge.drivers.acp.updates import read_message, update_in, word_of
from clawdforge.drivers.acp.usage import UsageMeter
from clawdforge.drivers.folders import attachments, credentials
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentAuthRequired, AgentError, AgentFailed, AgentStartFailed
from clawdforge.wire.quirks import Quirks

log = logging.getLogger(__name__)

AUTH_REQUIRED: Final = -32000
LAST_WORDS: Final = 500
EXIT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpLimits:
    """What an agent gets of bytes and seconds."""

    max_line_bytes: int = MAX_LINE_BYTES
    max_turn_bytes: int = 256 * 1024 * 1024
    start_timeout: float = 30.0  # for each answer until the session is open
    reply_timeout: float = 10.0  # for small requests beside a prompt


class AcpDriver:
    """Starts agents. `operator_env` is the server's environment, of which an agent sees what it may."""

    capabilities: Final = frozenset(Capability)

    def __init__(
        self,
        spawner: Spawner,
        operator_env: Mapping[str, str],
        limits: AcpLimits | None = None,
        *,
        operator_home: Path | None = None,
        prices: Prices | None = None,
    ) -> None:
        self._prices = prices or Prices.read()
        self._spawner = spawner
        self._operator_env = operator_env
        self._limits = limits or AcpLimits()
        self._operator_home = operator_home or Path.home()

    async def open(self, launch: Launch, sink: Sink) -> "AcpAgent":
        """A session that cannot be loaded becomes a new one; `how` and `note` of the agent say so."""
        try:
            agent = await self._open(launch, sink)
        except LoadLost as lost:
            agent = await self._open(replace(launch, agent_session_id=None), sink)
            agent.note = str(lost)
        if agent.note is not None:
            log.warning("%s: %s", launch.agent.name, agent.note, extra={"session_id": launch.session_id})
        return agent

    async def _open(self, launch: Launch, sink: Sink) -> "AcpAgent":
        env = agent_env(launch.agent, launch.home, self._operator_env)
        readable = (*launch.readable, attachments.make_folder(launch.home))
        writable = credentials.shared_files(launch.agent.credentials, self._operator_home)

        async def spawn(argv: tuple[str, ...], beside: AgentProcess | None = None) -> AgentProcess:
            return await self._spawner.spawn(
                argv,
                cwd=launch.cwd,
                home=launch.home,
                env=env,
                tag=launch.session_id,
                readable=readable,
                writable=writable,
                sandbox=launch.agent.sandbox,
                beside=beside,
            )

        files = _files_of(launch, readable)
        process = await spawn(launch.agent.command)
        terminals = Terminals(partial(spawn, beside=process), files, launch.cwd)
        agent = AcpAgent(launch, sink, process, terminals, files, self._limits, self._prices)
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
    ) -> None:
        self.agent_session_id = ""
        self.how: Literal["new", "loaded", "resumed"] = "new"
        self.remembered: list[str] | None = []
        self.note: str | None = None
        """Why it did not start as it was asked to, in the agent's words."""

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
        self._replay: Replay | None = None
        self._turn: RunningTurn | None = None
        self._prompted: RunningTurn | None = None
        self._spoiled = False
        self._answered_at: float | None = None
        self._default_model: str | None = None
        self._closing: asyncio.Task[None] | None = None
        self._login_methods: list[str] = []
        pipe = StdioPipe(process.stdout, process.stdin)
        self._connection = Connection(pipe, self, max_line_bytes=limits.max_line_bytes)

    @property
    def alive(self) -> bool:
        """Whether it can take a prompt. One that was left in the middle of a prompt cannot."""
        running = self._process.returncode is None and self._connection.open
        return running and self._closing is None and not self._spoiled

    async def start(self) -> None:
        """Shake hands and open the session."""
        handshake = Handshake(self._launch, self._start_call)
        try:
            await handshake.initialize()
            self._login_methods = handshake.login_methods
            opened = await self._open_session(handshake)
        except RpcError as error:
            raise self._refused(error, AgentStartFailed) from error
        self.agent_session_id, self.how = opened.session_id, opened.how
        if opened.how != "new":
            self._usage = UsageMeter(self._quirks, self._prices, self._launch.counter)
        notes = [opened.note] if opened.note else []
        controls = SessionControls(opened.session_id, opened.settings, self._start_call)
        self._default_model = controls.model()
        if self._launch.model:
            notes.append(await controls.set_model(self._launch.model) or "")
        if self._launch.plan_mode and not await controls.set_plan_mode(on=True):
            notes.append("it has no plan mode")
        self.note = "; ".join(filter(None, notes)) or None

    async def prompt(self, text: str, sink: Sink, *, preface: str = "") -> Answer:
        if self._prompted is not None:
            raise AgentFailed(f"{self._name} is busy with another prompt")
        turn = self._prompted = RunningTurn(sink, self._limits.max_turn_bytes)
        answers: list[tuple[Json, int]] = []

        async def conclude() -> None:
            message, size = answers[0]
            await turn.answer(read_message(message), size)
            self._turn = None  # what comes after the answer is not part of the turn

        async def answered(message: Json, size: int) -> None:
            answers.append((message, size))
            self._answered_at = asyncio.get_running_loop().time()
            if not self._quirks.late_ms:
                await conclude()

        try:
            await self._connection.catch_up()
            self._replay, self._turn = None, turn
            self._usage.begin()
            turn.sent.set()
            prompt = [{"type": "text", "text": block} for block in (preface, text) if block]
            params = {"sessionId": self.agent_session_id, "prompt": prompt}
            try:
                result = await self._connection.request("session/prompt", params, answered=answered)
            finally:
                if answers and self._turn is turn:
                    await asyncio.sleep(self._quirks.late_ms / 1000)
                    await conclude()
        except RpcError as error:
            raise self._refused(error, AgentFailed) from error
        except Disconnected as error:
            raise AgentFailed(await self._obituary(error), stderr=self.stderr_tail()) from error
        finally:
            self._spoiled = self._spoiled or not answers
            self._turn = self._prompted = None
            turn.sent.set()
            turn.end()
        stop_reason = result.get("stopReason")
        if turn.cancelled and self._quirks.end_turn_on_cancel:
            stop_reason = "cancelled"
        return Answer(
            stop_reason=stop_reason if isinstance(stop_reason, str) else "end_turn",
            usage=self._usage.of(result, self._launch.model or self._default_model),
        )

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
        await self._terminals.end_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self._process.paused(), self._terminals.paused():
            yield

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close {self._name}")
        await asyncio.shield(self._closing)

    def stderr_tail(self) -> str:
        return self._process.stderr_tail()

    async def told(self, message: Json, size: int) -> None:
        """Part of the connection's handler: where a message goes depends on when it came."""
        if message["method"] == "session/request_permission":
            return
        update = update_in(message)
        if update is not None:
            self._usage.see(update)
        if self._turn is not None:
            await self._turn.emit(read_message(message), size)
        elif self._replay is not None and update is not None and word_of(update) not in STATE_KINDS:
            self._replay.take(update)
        elif not self._spoiled:
            await self._sink.emit(read_message(message), size)

    async def asked(self, method: str, params: Json) -> Json:
        return await self._client.answer(method, params)

    async def dropped(self, size: int) -> None:
        reason = f"a line was longer than {self._limits.max_line_bytes} bytes (CLAWDFORGE_MAX_LINE_BYTES)"
        if self._turn is not None:
            await self._turn.lose(size, reason)
        else:
            await self._sink.truncated(size, reason)

    async def _ask(self, request: Ask) -> Verdict:
        if self._turn is not None:
            return await self._turn.ask(request)
        return await self._sink.ask(request)

    async def _open_session(self, handshake: Handshake) -> Opened:
        if self._launch.agent_session_id is None:
            return await handshake.open()
        self._replay = Replay()
        try:
            opened = await handshake.open()
        except AgentAuthRequired:
            raise
        except AgentStartFailed as error:
            raise LoadLost(f"it did not survive the attempt to load its session: {error.message}") from error
        if opened.how == "new":
            self._replay = None
        elif opened.how == "resumed" and not self._quirks.replays_on_resume:
            self.remembered = None
        else:
            self.remembered = self._replay.texts()
        return opened

    async def _start_call(self, method: str, params: Json) -> Json:
        """A request of the start: RpcError is the agent's refusal, AgentStartFailed its end."""
        try:
            async with asyncio.timeout(self._limits.start_timeout):
                return await self._connection.request(method, params)
        except RpcError as error:
            if _wants_login(error):
                raise self._refused(error, AgentStartFailed) from error
            raise
        except TimeoutError as error:
            seconds = f"{self._limits.start_timeout:g} s"
            words = f"{self._name} did not answer {method} within {seconds}{self._last_words()}"
            raise AgentStartFailed(words, stderr=self.stderr_tail()) from error
        except Disconnected as error:
            raise AgentStartFailed(await self._obituary(error), stderr=self.stderr_tail()) from error

    def _refused(self, error: RpcError, kind: type[AgentError]) -> AgentError:
        words = f"{self._name}: {error.words()}"
        if _wants_login(error):
            ways = f" ({', '.join(self._login_methods)})" if self._login_methods else ""
            hint = f"it wants a login{ways}; give it a token in the server's environment"
            return AgentAuthRequired(f"{words}; {hint}", stderr=self.stderr_tail())
        return kind(words, stderr=self.stderr_tail())

    async def _obituary(self, error: Disconnected) -> str:
        """How it ended, with its exit code if that comes in time, and its last words."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), EXIT_SECONDS)
        code = self._process.returncode
        how = f"{self._name}: {error}" if code is None else f"{self._name} exited with code {code}"
        return f"{how}{self._last_words()}"

    def _last_words(self) -> str:
        words = (self.stderr_tail().strip() or self._connection.garbage())[-LAST_WORDS:]
        return f"; it said: {words}" if words else ""

    def _settle_secs(self) -> float:
        """How long its last answer is too young for it to have written its memory."""
        if self._answered_at is None:
            return 0.0
        return self._answered_at + self._quirks.settle_ms / 1000 - asyncio.get_running_loop().time()

    async def _close(self) -> None:
        if self._prompted is not None:
            self._prompted.end()
        elif self._settle_secs() > 0 and self._process.returncode is None:
            await asyncio.sleep(self._settle_secs())
        try:
            await self._terminals.close()
        finally:
            await self._process.close()
            await self._connection.close()


def _files_of(launch: Launch, readable: tuple[Path, ...]) -> WorkspaceFiles:
    try:
        return WorkspaceFiles(launch.cwd, readable)
    except OSError as error:
        raise AgentStartFailed(f"a folder of the session cannot be used: {error}") from error


def _wants_login(error: RpcError) -> bool:
    return error.code == AUTH_REQUIRED and "auth" in error.words().lower()
