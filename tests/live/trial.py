"""What a real agent has to show: each step tells how it went in a word, or fails.

The model tells back every `mark:` that a request held, so the marks of an answer are what the agent still
knew: nothing lost, nothing twice, nothing that was taken back.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from clawdforge.client.models import Outcome, TurnResult
from tests.api.harness import until
from tests.live.bench import PATIENCE, LiveBench, runs

MARKS: Final = re.compile(r"turn=(\d+) .*?marks=([\w,-]+)", re.DOTALL)
SLOW: Final = "slow:2000 50"
CANCEL_SECONDS: Final = 10.0
WHOLE_TURN: Final = "acpx prompt"
"""What acpx is allowed, or not, before it begins: it cannot ask in between."""


@dataclass
class Trial:
    """One agent on its way through the steps. `known` are the marks that its session must hold."""

    bench: LiveBench
    session_id: str = ""
    known: list[str] = field(default_factory=list)
    cut: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)

    def say(self, mark: str, *, session_id: str | None = None, known: list[str] | None = None) -> TurnResult:
        """One turn, whose answer must hold all marks so far, each once."""
        expected = self.known if known is None else known
        expected.append(mark)
        session = self.bench.forge.attach(session_id or self.session_id)
        result = session.turn(f"mark:{mark} hello", timeout_secs=PATIENCE)
        self.check(result.text(), expected)
        return result

    def check(self, text: str, expected: list[str]) -> None:
        found = MARKS.search(text)
        assert found is not None, f"the model did not answer: {text[:300]!r}"
        marks = [mark for mark in found[2].split(",") if mark not in self.cut]
        assert marks == expected, f"the agent knows {marks}, not {expected}"

    def command(self, prompt: str, output: str) -> tuple[list[str], bool]:
        """A turn with a shell command, all that it asks for allowed: what it asked, whether it ran.

        The model must have been told `output`, which the prompt does not hold.
        """
        session = self.bench.forge.attach(self.session_id)
        session.patch(permission_mode="ask")
        since = len(self.bench.model.requests())
        turn = session.submit(prompt).turn_index
        asked: list[str] = []
        while True:
            pending = until(
                lambda: session.permissions() or self.bench.ended_early(self.session_id, turn),
                "a permission request or the end of the turn",
                PATIENCE,
            )
            if pending is True or not isinstance(pending, list):
                break
            for request in pending:
                session.decide(request.permission_id, "allow_once")
                asked.append(request.tool)
        session.patch(permission_mode="approve_all")
        self.check(self.bench.said(self.session_id, turn), self.known)
        results = [str(one["result"] or "") for one in self.bench.asked(since)]
        return asked, any(output in text for text in results)

    def how(self, session_id: str | None = None) -> str:
        """How the agent last got its memory."""
        return self._starts(session_id or self.session_id)[-1]

    def count_starts(self) -> int:
        """How often an agent was started for the session so far."""
        return len(self._starts(self.session_id))

    def _starts(self, session_id: str) -> list[str]:
        events = self.bench.forge.attach(session_id).events()
        return [str(event.model_dump()["how"]) for event in events if event.type == "context.started"]


def two_turns(trial: Trial) -> str:
    made = trial.bench.forge.create_session(agent=trial.bench.program.called)
    trial.session_id = made.session_id
    trial.say("one")
    trial.say("two")
    return "yes"


def usage(trial: Trial) -> str:
    """The agent's numbers against the model's own count for the same turn."""
    since = len(trial.bench.model.requests())
    used = trial.say("three").usage
    if used is None or (used.estimated and not used.cost_estimated):
        return "estimated"
    told = (used.input_tokens, used.output_tokens, used.cached_tokens)
    # Some ask more once a turn is over, for a suggestion or for their memory; that is not the turn's.
    asked = [one for one in trial.bench.asked(since) if "mark:three" in str(one["last"])]
    counted = [_sum(asked), _sum(trial.bench.model.requests()[since:])]
    whole = [(taken + cached, given, 0) for taken, given, cached in counted]
    assert told in counted + whole, (
        f"it reports {told}, the model counted {counted}, without and with requests aside"
    )
    return "exact" if told in counted else "exact, cached not told"


def _sum(requests: list[dict[str, Any]]) -> tuple[int, int, int]:
    answered = [one for one in requests if one["status"] == 200]
    taken, given, cached = (
        sum(int(one[f"{kind}_tokens"]) for one in answered) for kind in ("input", "output", "cached")
    )
    return taken, given, cached


def tool(trial: Trial) -> str:
    """A shell command that somebody has to allow."""
    cwd = Path(str(trial.bench.forge.attach(trial.session_id).state()["cwd"]))
    trial.known.append("tool")
    asked, ran = trial.command("mark:tool tool:bash printf %s-%d word 42 | tee proof.txt", "word-42")
    assert ran, "the model was not told what the command printed"
    assert (cwd / "proof.txt").read_text().strip() == "word-42"
    if WHOLE_TURN in asked:
        return "asked once per turn"
    return "asked" if asked else "runs without asking"


def cancel(trial: Trial) -> str:
    turn = trial.bench.talking(trial.session_id, f"mark:cancelled {SLOW}")
    trial.cut.add("cancelled")
    trial.bench.forge.attach(trial.session_id).cancel()
    ended = trial.bench.ended(trial.session_id, turn, CANCEL_SECONDS)
    assert ended.outcome == Outcome.CANCELLED, ended
    assert trial.bench.said(trial.session_id, turn).count("1 2 ") == 1
    trial.say("after_cancel")
    return "yes"


def agent_killed(trial: Trial) -> str:
    turn = trial.bench.talking(trial.session_id, f"mark:killed {SLOW}")
    trial.cut.add("killed")
    assert trial.bench.kill_agent(trial.session_id) > 0
    ended = trial.bench.ended(trial.session_id, turn)
    assert ended.outcome == Outcome.FAILED, ended
    trial.say("after_kill")
    return trial.how()


def server_killed(trial: Trial) -> str:
    turn = trial.bench.talking(trial.session_id, f"mark:crashed {SLOW}")
    trial.cut.add("crashed")
    before = trial.bench.said(trial.session_id, turn)
    left = trial.bench.processes(trial.session_id)
    assert left, "nothing runs"
    trial.bench.crash()
    ended = trial.bench.ended(trial.session_id, turn)
    assert ended.outcome == Outcome.INTERRUPTED, ended
    assert trial.bench.said(trial.session_id, turn).startswith(before), "streamed text was lost"
    until(lambda: not any(map(runs, left)), "the end of the old agent")
    trial.say("after_crash")
    return trial.how()


def undo(trial: Trial) -> str:
    trial.say("undone")
    trial.known.pop()
    trial.bench.forge.attach(trial.session_id).undo()
    trial.say("after_undo")
    return trial.how()


def fork(trial: Trial) -> str:
    forked = trial.bench.forge.attach(trial.session_id).fork()
    known = list(trial.known)
    trial.say("in_fork", session_id=forked.session_id, known=known)
    trial.say("in_parent")
    trial.say("in_fork_again", session_id=forked.session_id, known=known)
    return trial.how(forked.session_id)


STEPS: Final[dict[str, Callable[[Trial], str]]] = {
    "two turns": two_turns,
    "usage": usage,
    "tool, permission": tool,
    "cancel": cancel,
    "agent killed": agent_killed,
    "server killed": server_killed,
    "undo": undo,
    "fork": fork,
}


def one_shot(bench: LiveBench) -> str:
    """`POST /run`: one prompt to `claude -p`, its answer a JSON value."""
    since = len(bench.model.requests())
    result = bench.forge.run('say:{"answer": 42}')
    assert result.ok, result
    assert result.result == {"answer": 42}, result
    # The sessions before may still ask for something of theirs.
    assert len([one for one in bench.asked(since) if '"answer": 42' in str(one["last"])]) == 1
    return "yes"
