"""One prompt and its answer, printed: as text, as one JSON object, or as the events themselves."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any, Final

from clawdforge.by_name import load
from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.output.lines import clean
from clawdforge.cli.target.options import Target
from clawdforge.client import Session, TurnResult, TurnStream

TYPE_CHECKING = False  # as type checkers understand it; what is named here brings the models
if TYPE_CHECKING:
    from clawdforge.cli.output.steps import Steps
    from clawdforge.wire.event import Event

STEPS: Final = "clawdforge.cli.output.steps:Steps"
"""Only the formats for programs count them. Without the models a prompt is on its way sooner, and the agent
starts while they are imported for the answer."""

FORMATS: Final = ("text", "json", "stream-json")
ODD_STOPS: Final = {
    "refusal": "the model refused to answer; ask in other words, or choose another model with -m",
    "max_tokens": "the model reached its limit of tokens in mid-answer; ask for the rest with "
    "`clawdforge -p -c 'go on'`",
    "max_turn_requests": "the agent reached its limit of calls to the model; let it go on with "
    "`clawdforge -p -c 'go on'`",
}
"""Ends of a turn that are none of its own making, though nothing failed."""


@dataclass(slots=True)
class Printer:
    """Prints a turn while it runs. With `waits`, somebody else decides what the agent asks for."""

    target: Target
    session: Session
    form: str
    waits: bool = False
    denied: list[str] = field(default_factory=list)
    last_seq: int = 0
    _open_line: bool = False
    _steps: Steps | None = None

    def __post_init__(self) -> None:
        if self.form != "text":
            self._steps = load(STEPS)()

    def run_turn(self, prompt: str, **options: Any) -> TurnResult:
        """Run one prompt; Ctrl-C stops the turn and keeps what was said."""
        with self.session.stream(prompt, **options) as stream:
            return self.follow(stream)

    def follow(self, stream: TurnStream) -> TurnResult:
        try:
            for event in stream:
                self._print_event(event)
        except KeyboardInterrupt:
            self._end_line()
            self.session.cancel()
            raise Failure(
                f"cancelled; the answer so far is kept in session {self.session.session_id}",
                Exit.INTERRUPTED,
            ) from None
        result = stream.result()
        self._end_line()
        if self.form != "text":
            print(json.dumps(self.summary(result), ensure_ascii=False), flush=True)
        return result

    def summary(self, result: TurnResult) -> dict[str, Any]:
        """The one object of `json`, and the last line of `stream-json`."""
        usage = result.usage.model_dump() if result.usage else None
        return {
            "type": "result",
            "subtype": "success" if result.ok else f"error_{result.outcome}",
            "is_error": not result.ok,
            "result": result.text(),
            "error": result.error,
            "session_id": result.session_id,
            "num_turns": self._steps.count if self._steps else 1,
            "turn_index": result.turn_index,
            "duration_ms": result.duration_ms,
            "stop_reason": result.stop_reason,
            "outcome": result.outcome,
            "stopped_by": result.stopped_by,
            "total_cost_usd": usage["cost_usd"] if usage else None,
            "usage": usage,
            "permission_denials": self.denied,
            "last_seq": self.last_seq,
        }

    def _print_event(self, event: Event) -> None:
        self.last_seq = event.seq
        if self._steps is not None:
            self._steps.take(event)
        if self.form == "stream-json":
            print(json.dumps(event.model_dump(exclude_unset=True), ensure_ascii=False), flush=True)
        elif self.form == "text" and event.type == "text":
            print(clean(event.text), end="", flush=True)
            self._open_line = not event.text.endswith("\n")
        if event.type == "permission.requested":
            self._answer_request(event.model_dump())

    def _answer_request(self, fields: dict[str, Any]) -> None:
        tool, permission_id = str(fields.get("tool")), str(fields.get("permission_id"))
        if self.waits:
            short = self.session.session_id[:8]
            self.target.note(
                f"the agent asks for permission: {clean(tool)}. Answer with `clawdforge approve {short}` "
                f"or `clawdforge deny {short}`"
            )
            return
        self.denied.append(tool)
        self.session.decide(permission_id, "reject")

    def _end_line(self) -> None:
        if self._open_line:
            print(flush=True)
            self._open_line = False


def outcome_code(target: Target, printer: Printer, result: TurnResult) -> Exit:
    """The exit code for the turn's outcome; what is to be said of it goes to stderr."""
    code, words = _read_good_end(printer, result) if result.outcome == "completed" else _read_bad_end(result)
    if code is Exit.ERROR:
        print(f"clawdforge: {words}", file=sys.stderr)  # with --quiet too
    elif words:
        target.note(f"clawdforge: {words}")
    return code


def _read_good_end(printer: Printer, result: TurnResult) -> tuple[Exit, str]:
    if result.stop_reason in ODD_STOPS:
        return Exit.CUT_SHORT, ODD_STOPS[result.stop_reason]
    if printer.denied:
        denied = ", ".join(map(clean, printer.denied))
        return Exit.DENIED, (
            f"the agent was denied: {denied}; "
            "allow everything with --permission-mode approve_all, or decide each with --permission-mode ask"
        )
    return Exit.OK, ""


def _read_bad_end(result: TurnResult) -> tuple[Exit, str]:
    if result.outcome == "timed_out":
        return Exit.TIMEOUT, (
            "the turn timed out; allow more time with --timeout SECS. The session stays usable."
        )
    if result.stopped_by is not None:
        return Exit.LIMIT, result.error or f"the turn was stopped by {result.stopped_by}"
    if result.outcome == "cancelled":
        return Exit.INTERRUPTED, "the turn was cancelled; the answer so far is kept"
    hint = "; `clawdforge retry` sends the prompt again" if result.outcome == "interrupted" else ""
    return Exit.ERROR, f"the turn {result.outcome}: {result.error or ''}{hint}"
