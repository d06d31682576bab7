"""The driver that speaks to an agent through the acpx command line: one `acpx prompt` for each turn.

acpx leaves a queue owner and the agent running between two prompts, and keeps its records in the agent's
home. All of that lives in one contained process tree for each session, so nothing survives it. The record is
closed softly when the agent goes to sleep; it comes back by `sessions new --resume-session`, which fails
with an error where the agent has lost it.

acpx ends the agent between opening a session and its first prompt. An agent that keeps no empty sessions, as
Claude Code does, has lost it by then, and acpx begins another one under the same record. So the id that we
know is the record's, and the agent's own is looked up there when the session is to come back.
"""

import asyncio
import contextlib
import json
import logging
import re
import secrets
import shlex
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.agents import AgentSpec, Answer, Ask, Launch
from clawdforge.core.pacing.pace import AppPace, Pace
from clawdforge.core.ports import Capability, Sink
from clawdforge.drivers.acp.failures import Failures
from clawdforge.drivers.acp.limits import AcpLimits
from clawdforge.drivers.acp.prices import Prices
from clawdforge.drivers.acp.prompt import RunningPrompt
from clawdforge.drivers.acp.updates import read_message, update_in
from clawdforge.drivers.acp.usage import UsageMeter
from clawdforge.drivers.acpx import host
from clawdforge.drivers.acpx.stream import Part, PromptStream, describe_error
from clawdforge.drivers.folders import attachments, credentials
from clawdforge.drivers.folders.home_lock import run_to_end
from clawdforge.drivers.folders.ownership import Ownership, choose_user
from clawdforge.drivers.folders.writable import find_writable
from clawdforge.drivers.processes.environment import agent_env
from clawdforge.drivers.processes.launching import EXECUTABLE
from clawdforge.drivers.processes.policy import Policy
from clawdforge.drivers.processes.process import AgentProcess, has_failed
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import Spawner, find_program
from clawdforge.jsonrpc.ndjson import Framer, Line, Oversize, explain_lost_line
from clawdforge.wire.base import Json
from clawdforge.wire.errors import AgentError, AgentFailed, AgentStartFailed
from clawdforge.wire.quirks import Quirks

log = logging.getLogger(__name__)

PROGRAM: Final = "acpx"
ITSELF: Final = AgentSpec(name=PROGRAM, driver=PROGRAM, command=(PROGRAM,))
HOST: Final = Path(host.__file__).resolve()
READ_BYTES: Final = 64 * 1024
CLOSE_SECONDS: Final = 8.0
LAST_WORDS: Final = 500
PLAIN: Final = re.compile(r"\w[\w.:-]{0,199}")
"""An id that cannot be mistaken for an option."""

ALLOW: Final = "allow"
OPTIONS: Final[tuple[Json, ...]] = (
    {"optionId": ALLOW, "name": "Allow for this turn", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)


class AcpxDriver:
    """Starts agents under acpx. The agent's command is the same as with the driver `acp`."""

    capabilities: Final = frozenset({Capability.RETURN, Capability.USAGE})

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
        self._spawner = spawner
        self._operator_env = operator_env
        self._limits = limits or AcpLimits()
        self._operator_home = operator_home or Path.home()
        self._prices = prices or Prices.read()
        self._failures = Failures.read()

    async def open(self, launch: Launch, sink: Sink) -> "AcpxAgent":
        inside = self._spawner.containment.choose(launch.agent.sandbox)
        env = agent_env(launch.agent, launch.home, self._operator_env, inside) | dict(launch.env)
        find_program(PROGRAM, env)
        find_program(launch.agent.command[0], env, launch.agent.install)
        shared = credentials.shared_files(launch.agent.credentials, self._operator_home)
        readable = (*launch.readable, attachments.make_folder(launch.home), HOST)
        runs_as = await run_to_end(partial(choose_user, self._ownership, launch, shared))
        writable = find_writable(launch)
        await self._pace.of(launch.app).enter()
        # With the interpreter that every agent sees; one of a virtual environment may be hidden from it.
        process = await self._spawner.spawn(
            [str(EXECUTABLE), "-I", "-S", str(HOST)],
            cwd=launch.cwd,
            home=launch.home,
            env=env,
            tag=launch.session_id,
            app=launch.app,
            needs=Needs.of(launch.agent, PROGRAM),
            readable=readable,
            writable=writable,
            private_tmp=True,  # acpx puts the socket of its queue there
            sandbox=launch.agent.sandbox,
            policy=Policy.of(launch.agent),
            identity=launch.workspace_identity,
            runs_as=runs_as,
        )
        tables = (self._prices, self._failures)
        agent = AcpxAgent(launch, sink, process, self._limits, *tables, self._pace.of(launch.app))
        try:
            await agent.start()
        except BaseException:
            await agent.close()
            raise
        if agent.note is not None:
            log.warning("%s: %s", launch.agent.name, agent.note, extra={"session_id": launch.session_id})
        return agent


class AcpxAgent:
    """One session of acpx in its process tree, ready for prompts."""

    def __init__(
        self,
        launch: Launch,
        sink: Sink,
        process: AgentProcess,
        limits: AcpLimits,
        prices: Prices,
        failures: Failures,
        pace: AppPace,
    ) -> None:
        self._pace = pace
        self.agent_session_id = ""
        self.how: Literal["new", "loaded", "resumed"] = "new"
        self.remembered: list[str] | None = []
        self.answered: str | None = None
        self.mcp_servers: tuple[str, ...] = ()
        self.note: str | None = None
        self._launch = launch
        self._name = launch.agent.name
        self._sink = sink
        self._process = process
        self._limits = limits
        self._framer = Framer(limits.max_line_bytes)
        self._lines: deque[Line | Oversize] = deque()
        quirks = Quirks.model_validate(launch.agent.quirks)
        self._usage = UsageMeter(quirks, prices, launch.counter)
        self._failures = failures.with_words(quirks.failures)
        self._turn: RunningPrompt | None = None
        self._prompts = 0
        self._spoiled = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and self._closing is None and not self._spoiled

    async def start(self) -> None:
        wanted = self._launch.agent_session_id
        notes = ["it has no plan mode"] if self._launch.plan_mode else []
        notes += ["acpx tells agents of no MCP servers"] if self._launch.mcp else []
        if wanted is not None:
            try:
                own = await self._find_own_id(wanted)
                self.agent_session_id = await self._new_session("--resume-session", own)
            except AgentError as error:
                notes.append(f"its session could not be resumed: {error.message}")
            else:
                self.how, self.remembered = "resumed", None
        if self.how == "new":
            self.agent_session_id = await self._new_session()
        self.note = "; ".join(notes) or None

    async def prompt(
        self,
        text: str,
        sink: Sink,
        *,
        preface: str = "",
        traceparent: str | None = None,  # noqa: ARG002 - acpx hands on none
    ) -> Answer:
        if self._turn is not None:
            raise AgentFailed(f"{self._name} is busy with another prompt")
        turn = self._turn = RunningPrompt(sink, self._limits.max_turn_bytes)
        answer: Json | None = None
        try:
            mode = await self._decide_for_turn(turn)
            # Blocks, not bare text: acpx takes text that looks like blocks apart, and trims it.
            blocks = [{"type": "text", "text": block} for block in (preface, text) if block]
            argv = self._make_argv("--ttl", "0", mode, "prompt", "-s", self._launch.session_id, "-f", "-")
            self._usage.start_prompt()
            stream = PromptStream()
            async with contextlib.aclosing(self._run({"argv": argv, "input": json.dumps(blocks)})) as lines:
                async for line in lines:
                    answer = await self._handle_line(stream, line, turn) or answer
            self._prompts += 1
        finally:
            self._spoiled = self._spoiled or answer is None
            self._turn = None
            turn.end()
        return self._read_answer(answer, stream, begun=turn.has_begun)

    async def cancel(self) -> None:
        turn = self._turn
        if turn is not None:
            turn.end()
            await self._send_order(
                {"argv": self._make_argv("cancel", "-s", self._launch.session_id), "quiet": True}
            )

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        with self._process.pause():
            yield

    async def close(self) -> None:
        if self._closing is None or has_failed(self._closing):
            self._closing = asyncio.create_task(self._close(), name=f"close {self._name}")
        await asyncio.shield(self._closing)

    def stderr_tail(self) -> str:
        return self._process.stderr_tail()

    async def _close(self) -> None:
        idle = self._turn is None and not self._spoiled and self._process.returncode is None
        try:
            if idle and self.agent_session_id:
                with contextlib.suppress(AgentError, TimeoutError):
                    async with asyncio.timeout(CLOSE_SECONDS):
                        await self._call("sessions", "close", self._launch.session_id)
        finally:
            await self._process.close(eof_grace=0.5, term_grace=0.0)

    async def _find_own_id(self, wanted: str) -> str:
        """The agent's id of the session in a record of acpx; the same where it has no such record."""
        said = await self._run_briefly({"record": wanted}, "read its record")
        own = said.get("acpSessionId")
        return own if isinstance(own, str) and PLAIN.fullmatch(own) else wanted

    async def _new_session(self, *more: str) -> str:
        """Opens a session with ours as its name; the id of the record that acpx keeps of it."""
        said = await self._call("sessions", "new", "--name", self._launch.session_id, *more)
        session_id = said.get("acpxSessionId")
        if not isinstance(session_id, str) or not session_id:
            raise AgentStartFailed(f"acpx opened no session for {self._name}{self._quote_last_words()}")
        return session_id

    async def _call(self, *verb: str) -> Json:
        """Run a short acpx command and return the last object that it printed; its error is raised."""
        said = await self._run_briefly({"argv": self._make_argv("--approve-all", *verb)}, " ".join(verb[:2]))
        if "error" in said:
            raise AgentStartFailed(
                f"acpx: {describe_error(said['error'])}{self._quote_last_words()}", stderr=self.stderr_tail()
            )
        return said

    async def _run_briefly(self, order: Json, what: str) -> Json:
        """Carry out an order within the start timeout and return the last object that it printed."""
        said: Json = {}
        try:
            async with asyncio.timeout(self._limits.start_timeout):
                async for line in self._run(order):
                    if isinstance(line, Line):
                        said = line.message
        except TimeoutError as error:
            self._spoiled = True
            failed = f"acpx {what} took longer than {self._limits.start_timeout:g} s"
            raise AgentStartFailed(
                f"{failed}{self._quote_last_words()}", stderr=self.stderr_tail()
            ) from error
        return said

    def _make_argv(self, *words: str) -> list[str]:
        model = ("--model", self._launch.model) if self._launch.model else ()
        agent = shlex.join(self._launch.agent.command)
        where = ("--agent", agent, "--cwd", str(self._launch.cwd))
        return [PROGRAM, *where, *model, "--format", "json", *words]

    async def _decide_for_turn(self, turn: RunningPrompt) -> str:
        """Ask once for everything in this turn, because acpx cannot ask while a turn runs."""
        call = {"toolCallId": "acpx", "title": f"Everything that {self._name} asks for in this turn"}
        request = {"toolCall": call, "options": list(OPTIONS)}
        verdict = await turn.ask(Ask(tool="acpx prompt", kind=None, options=OPTIONS, request=request))
        return "--approve-all" if verdict.option_id == ALLOW else "--deny-all"

    async def _handle_line(
        self, stream: PromptStream, line: Line | Oversize, turn: RunningPrompt
    ) -> Json | None:
        """Pass a line on. Returns the message if it was the answer."""
        if isinstance(line, Oversize):
            await turn.report_loss(line.dropped_bytes, explain_lost_line(self._limits.max_line_bytes))
            return None
        message, part = line.message, stream.take(line.message)
        if stream.forgot and (self._prompts or self.how == "resumed"):
            raise AgentFailed(
                f"{self._name} lost its session, and acpx started an empty one. "
                "Send the prompt again: the agent is then given the transcript.",
                stderr=self.stderr_tail(),
            )
        if part is Part.ANSWER:
            await turn.answer(read_message(message), line.size)
            return message
        if part is Part.EVENT:
            update = update_in(message)
            if update is not None and self._usage.observe(update):
                turn.note_usage(self._usage.used_so_far(self._launch.model))
            await turn.emit(read_message(message), line.size)
        elif part is Part.LATE:
            await self._sink.emit(read_message(message), line.size)
        return None

    def _read_answer(self, answer: Json | None, stream: PromptStream, *, begun: bool) -> Answer:
        result = answer.get("result") if answer is not None else None
        if answer is None or not isinstance(result, dict):
            raise self._explain_failure((answer or {}).get("error"), stream, begun=begun)
        stop_reason = result.get("stopReason")
        return Answer(
            stop_reason=stop_reason if isinstance(stop_reason, str) else "end_turn",
            usage=self._usage.usage_of(result, self._launch.model),
        )

    def _explain_failure(self, error: object, stream: PromptStream, *, begun: bool) -> AgentError:
        """What the agent refused is told apart as over ACP; acpx may also speak of it in its own words."""
        said = describe_error(error) or stream.trouble or "acpx ended without an answer"
        words = f"{self._name}: {said}{self._quote_last_words()}"
        code = error.get("code") if isinstance(error, dict) else None
        number = code if isinstance(code, int) else 0
        failure = self._failures.judge(number, said, SystemClock().now() / SECOND)
        self._spoiled = self._spoiled or failure.is_broken
        return failure.make_error(words, begun=begun, stderr=self.stderr_tail())

    async def _send_order(self, order: Json) -> None:
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise AgentFailed(f"{self._name}: its processes have ended{self._quote_last_words()}") from error

    async def _run(self, order: Json) -> AsyncGenerator[Line | Oversize, None]:
        """The lines that are printed for an order, until it is done."""
        run = secrets.token_hex(8)
        await self._send_order({**order, "run": run})
        while True:
            while self._lines:
                line = self._lines.popleft()
                if isinstance(line, Line) and line.message.get("run") == run:
                    if line.message.get("exit") == 127 and line.message.get("words"):
                        raise AgentStartFailed(f"acpx could not be run: {line.message['words']}")
                    return
                yield line
            chunk = await self._process.stdout.read(READ_BYTES)
            if not chunk:
                raise AgentFailed(
                    f"{self._name}: its processes have ended{self._quote_last_words()}",
                    stderr=self.stderr_tail(),
                )
            await self._pace.enter()
            frames = self._framer.feed(chunk)
            self._lines += [line async for line in self._framer.decode_large(frames, self._pace)]

    def _quote_last_words(self) -> str:
        said = [line for line in self.stderr_tail().splitlines() if not line.startswith("[acpx]")]
        tail = "\n".join(said).strip()[-LAST_WORDS:]
        return f"; it said: {tail}" if tail else ""
