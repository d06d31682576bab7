"""Claude Code in print mode: one process for one prompt, its answer an envelope of JSON on stdout."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from clawdforge.core.models.agents import AgentSpec
from clawdforge.core.rules.memory import name_files
from clawdforge.core.services.runs import RunOrder, RunOutcome, parse_value
from clawdforge.drivers.folders import attachments, credentials, home_settings
from clawdforge.drivers.folders.ownership import Ownership
from clawdforge.drivers.folders.tree_removal import delete_tree
from clawdforge.drivers.processes.environment import TEMPORARY, agent_env
from clawdforge.drivers.processes.policy import Policy
from clawdforge.drivers.processes.process import AgentProcess
from clawdforge.drivers.processes.runtimes import Needs
from clawdforge.drivers.processes.spawner import Spawner
from clawdforge.drivers.processes.users import RunsAs
from clawdforge.wire.errors import AgentNotInstalled

T = TypeVar("T")

PIECE: Final = 64 * 1024
WORDS_CHARS: Final = 2000
INSTALL: Final = "npm install -g @anthropic-ai/claude-code"
COUNTED: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""What `usage` of the envelope counts, each token once."""


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """Everything that a process printed, and its exit code."""

    stdout: bytes
    stderr: str
    code: int


class ClaudePrint:
    """Each run has a home and a working folder of its own, under `folder`, for as long as it takes."""

    def __init__(
        self,
        spawner: Spawner,
        operator_env: Mapping[str, str],
        spec: AgentSpec,
        program: str,
        folder: Path,
        *,
        max_bytes: int,
        operator_home: Path | None = None,
        ownership: Ownership | None = None,
    ) -> None:
        self._ownership = ownership
        self._spawner = spawner
        self._operator_env = operator_env
        self._spec = spec
        self._program = program
        self._folder = folder
        self._max_bytes = max_bytes
        self._operator_home = operator_home or Path.home()

    @property
    def agent(self) -> str:
        return self._spec.name

    def clean_up_unfinished(self) -> None:
        """Delete what the runs of a dead server left behind. Called at the start; blocking."""
        delete_tree(self._folder)

    async def run(self, order: RunOrder) -> RunOutcome:
        run_folder = self._folder / order.run_id
        try:
            paths = await _run_to_its_end(lambda: self._prepare(run_folder, order))
            said = await self._run_process(run_folder, order, name_files(order.prompt, paths))
        finally:
            await _run_to_its_end(lambda: delete_tree(run_folder))
        if said is None:
            return RunOutcome(error=f"claude printed more than {self._max_bytes} bytes", stop_reason="error")
        return outcome_of(said)

    def _prepare(self, run_folder: Path, order: RunOrder) -> list[Path]:
        home, work = run_folder / "home", run_folder / "work"
        for folder in (home / TEMPORARY, work):
            folder.mkdir(parents=True, mode=0o700)
        home_settings.write_settings(home, self._spec, self._operator_home)
        credentials.link_files(home, self._spec.credentials, self._operator_home)
        return [attachments.attach_file(work, row) for row in order.files]

    async def _run_process(self, run_folder: Path, order: RunOrder, prompt: str) -> ProcessOutput | None:
        process = await self._spawn(run_folder, order)
        try:
            sending = asyncio.create_task(_send_prompt(process, prompt))
            try:
                stdout = await self._read_stdout(process)
                code = await process.wait() if stdout is not None else None
            finally:
                sending.cancel()
                await asyncio.wait({sending})
        finally:
            await process.close(eof_grace=0.2, term_grace=0.5)
        return None if stdout is None or code is None else ProcessOutput(stdout, process.stderr_tail(), code)

    async def _spawn(self, run_folder: Path, order: RunOrder) -> AgentProcess:
        home, work = run_folder / "home", run_folder / "work"
        shared = credentials.shared_files(self._spec.credentials, self._operator_home)
        runs_as = RunsAs(writable=shared)
        if self._ownership is not None:
            runs_as = await self._ownership.choose_user(order.app, home, work, self._spec.sandbox, shared)
        # The prompt goes in by stdin: an argument could hold 128 KiB at most, and all users could see it.
        argv = [self._program, "-p", "--output-format", "json"]
        if order.model is not None:
            argv += ["--model", order.model]
        try:
            return await self._spawner.spawn(
                argv,
                cwd=work,
                home=home,
                env=agent_env(self._spec, home, self._operator_env),
                tag=order.run_id,
                app=order.app,
                needs=Needs(((self._program,),), self._spec.readable),
                runs_as=runs_as,
                sandbox=self._spec.sandbox,
                policy=Policy.of(self._spec),
            )
        except AgentNotInstalled as error:
            raise AgentNotInstalled(
                f"{self._program} is not installed; run {INSTALL}, or name it in CLAWDFORGE_CLAUDE_BIN"
            ) from error

    async def _read_stdout(self, process: AgentProcess) -> bytes | None:
        """All of stdout; None when it exceeds the limit."""
        said = bytearray()
        while data := await process.stdout.read(PIECE):
            said += data
            if len(said) > self._max_bytes:
                return None
        return bytes(said)


def outcome_of(said: ProcessOutput) -> RunOutcome:
    """What the envelope means. It says `subtype: success` beside an error, so only `is_error` counts."""
    envelope = envelope_in(said.stdout)
    text = "" if envelope is None else _text(envelope.get("result"))
    if said.code != 0:
        return RunOutcome(
            error=f"claude exit {said.code}",
            stop_reason="error",
            words=text[:WORDS_CHARS],
            stderr=said.stderr,
            usage=None if envelope is None else usage_in(envelope),
        )
    if envelope is None:
        error = "claude did not answer with a result in JSON"
        shown = said.stdout[:WORDS_CHARS].decode(errors="replace").strip()
        return RunOutcome(error=error, stop_reason="error", words=shown, stderr=said.stderr)
    if envelope.get("is_error"):
        error = "claude reported an error"
        return RunOutcome(
            error=error,
            stop_reason="error",
            words=text[:WORDS_CHARS],
            stderr=said.stderr,
            usage=usage_in(envelope),
        )
    reason = envelope.get("stop_reason")
    return RunOutcome(
        result=parse_value(text),
        stop_reason=reason if isinstance(reason, str) and reason else "end_turn",
        usage=usage_in(envelope),
    )


def usage_in(envelope: dict[str, Any]) -> dict[str, Any] | None:
    """The tokens and the cost that the envelope tells of, with the names that a turn's usage has."""
    told, cost = envelope.get("usage"), envelope.get("total_cost_usd")
    counted = [value for name, value in told.items() if name in COUNTED] if isinstance(told, dict) else []
    whole = [value for value in counted if type(value) is int]
    if not whole and not isinstance(cost, int | float):
        return None
    return {
        "total_tokens": sum(whole) if whole else None,
        "cost_usd": cost if isinstance(cost, int | float) else None,
    }


def envelope_in(stdout: bytes) -> dict[str, Any] | None:
    """The last object of type `result`: the whole of stdout, or a line of it behind warnings."""
    for piece in (stdout, *reversed(stdout.splitlines())):
        try:
            found = json.loads(piece)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and found.get("type") == "result":
            return found
    return None


def _text(result: Any) -> str:
    text = "" if result is None else result if isinstance(result, str) else json.dumps(result)
    return text.encode(errors="replace").decode()  # half a surrogate pair cannot be sent on


async def _send_prompt(process: AgentProcess, prompt: str) -> None:
    """A program that ends before it has read all of its input is judged by how it ends."""
    with contextlib.suppress(ConnectionError):
        process.stdin.write(prompt.encode())
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()


async def _run_to_its_end(work: Callable[[], T]) -> T:
    """Run in a thread and never leave it running: whoever is cancelled waits for its end."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # seen; the cancel is what counts
        raise
