"""The ragged edges of a real agent: what was cut off, slept over, refused by its model, or killed beside it.

Each edge tells in a word what happened, and fails only where the session is of no use afterwards. An agent's
own weakness is a word in its cell; the model's log shows what the agent still held.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from clawdforge.client.models import Outcome
from tests.api.harness import until
from tests.live.bench import PATIENCE
from tests.live.trial import CANCEL_SECONDS, Trial

TRIES_SECONDS: Final = 30.0
"""How long an agent may go on trying by itself before it is stopped; some would for ten minutes."""

EDGE_SETTINGS: Final = {
    "CLAWDFORGE_TURN_RETRIES": "0",
    "CLAWDFORGE_SPARE_AGENTS": "1",
}
"""For the server, which is not to try again by itself what the model refuses."""

SECRET: Final = "nap-4711"
SLOW_WORDS: Final = 5


def first_text(trial: Trial) -> str:
    """Seconds to the first text: of a new session, of one for which a spare was ready, of its next turn."""
    forge, agent = trial.bench.forge, trial.bench.program.called
    trial.session_id = forge.create_session(agent=agent).session_id
    cold = _first_text(trial, "cold")
    until(lambda: forge.healthz().live_agents == 2, "a spare agent", PATIENCE)
    trial.session_id = forge.create_session(agent=agent).session_id
    trial.known.clear()
    assert forge.healthz().live_agents == 2, "the spare was not taken"
    spare, warm = (_first_text(trial, mark) for mark in ("spare", "warm"))
    return f"{cold:.2f} / {spare:.2f} / {warm:.2f}"


def _first_text(trial: Trial, mark: str) -> float:
    """By the server's own clock, from the prompt's arrival to the first word of the model's."""
    turn = trial.say(mark).turn_index
    told = [event for event in trial.bench.forge.attach(trial.session_id).events() if event.turn == turn]
    text = ""
    for event in told:
        text += event.text if event.type == "text" else ""
        if "turn=" in text:
            return (datetime.fromisoformat(event.ts) - datetime.fromisoformat(told[0].ts)).total_seconds()
    raise AssertionError(f"no word of the model's in {text!r}")


def plain_command(trial: Trial) -> str:
    """A command that the model asks no permission for, in the agent's own sandbox, if it has one."""
    trial.known.append("plain")
    asked, result = trial.command("mark:plain tool:plain printf %s-%d plain 42 | tee plain.txt", "plain-42")
    assert result, "it did not run"
    return "asked, ran" if asked else "ran"


def inside_killed(trial: Trial) -> str:
    """What the agent's program has started is killed between two turns."""
    if trial.bench.kill_inside(trial.session_id) == 0:
        return "no child"
    starts = trial.count_starts()
    turn = trial.bench.forge.attach(trial.session_id).submit("mark:inside hello").turn_index
    failed = trial.bench.ended(trial.session_id, turn).outcome != Outcome.COMPLETED
    (trial.cut.add if failed else trial.known.append)("inside")
    trial.say("after_inside")
    how = trial.how() if trial.count_starts() > starts else "went on by itself"
    return f"one turn fails, then {how}" if failed else how


def cut_by_kill(trial: Trial) -> str:
    """Whether the agent knows what it had streamed when it was killed in the middle of an answer."""
    turn = trial.bench.talking(
        trial.session_id, "mark:halfkill slow:2000 50 halfkill", "halfkill1 halfkill2 "
    )
    trial.cut.add("halfkill")
    assert trial.bench.kill_agent(trial.session_id) > 0
    assert trial.bench.ended(trial.session_id, turn).outcome == Outcome.FAILED
    return _remembered(trial, "after_halfkill", "halfkill1 halfkill2 ")


def cut_by_cancel(trial: Trial) -> str:
    turn = trial.bench.talking(
        trial.session_id, "mark:halfstop slow:2000 50 halfstop", "halfstop1 halfstop2 "
    )
    trial.cut.add("halfstop")
    trial.bench.forge.attach(trial.session_id).cancel()
    assert trial.bench.ended(trial.session_id, turn, CANCEL_SECONDS).outcome == Outcome.CANCELLED
    return _remembered(trial, "after_halfstop", "halfstop1 halfstop2 ")


def _remembered(trial: Trial, mark: str, words: str) -> str:
    since = len(trial.bench.model.requests())
    trial.say(mark)
    held = [str(one["held"]) for one in trial.bench.asked(since) if f"mark:{mark}" in str(one["last"])]
    assert held, "the model was not asked"
    return "known" if words in held[0] else "forgotten"


def nap(trial: Trial) -> str:
    """Whether the output of a command is still known after the agent was put to sleep."""
    trial.known.append("before_nap")
    _, result = trial.command("mark:before_nap tool:bash printf %s-%d nap 4711", SECRET)
    assert result, "the command did not run"
    trial.bench.put_to_sleep(trial.session_id)
    since = len(trial.bench.model.requests())
    trial.say("after_nap")
    held = [str(one["held"]) for one in trial.bench.asked(since)]
    return f"{trial.how()}, {'result known' if any(SECRET in text for text in held) else 'result forgotten'}"


def _refused(script: str) -> Callable[[Trial], str]:
    """What a turn is told to be when the model refuses it; the next one is as if nothing had been."""

    def edge(trial: Trial) -> str:
        mark = f"refused_{script.replace(':', '_')}"
        trial.cut.add(mark)
        session = trial.bench.forge.attach(trial.session_id)
        turn = session.submit(f"mark:{mark} {script}").turn_index
        word = _name_end(trial, turn)
        trial.say(f"after_{mark}")
        return word

    return edge


def _name_end(trial: Trial, turn: int) -> str:
    """How a turn came to its end: the code of its failure, or that the agent went on trying."""
    try:
        ended = trial.bench.ended(trial.session_id, turn, TRIES_SECONDS)
    except AssertionError:
        trial.bench.forge.attach(trial.session_id).cancel()
        stopped = trial.bench.ended(trial.session_id, turn, CANCEL_SECONDS)
        assert stopped.outcome == Outcome.CANCELLED, stopped
        return "goes on trying"
    if ended.outcome == Outcome.COMPLETED:
        return "an answer that says so" if trial.bench.said(trial.session_id, turn) else "an empty answer"
    return str(ended.code)


def slow_stream(trial: Trial) -> str:
    """Two seconds between any two words."""
    trial.known.append("slow")
    session = trial.bench.forge.attach(trial.session_id)
    turn = session.submit(f"mark:slow slow:{SLOW_WORDS} 2000 slow").turn_index
    ended = trial.bench.ended(trial.session_id, turn)
    said = trial.bench.said(trial.session_id, turn)
    assert ended.outcome == Outcome.COMPLETED, ended
    assert said.count("slow1 ") == 1, said
    assert said.split()[-1] == f"slow{SLOW_WORDS}", said
    return "whole"


def cut_stream(trial: Trial) -> str:
    """The model's stream breaks off in the middle of an answer, each time that it is asked."""
    trial.cut.add("cutoff")
    session = trial.bench.forge.attach(trial.session_id)
    turn = session.submit("mark:cutoff hello\ncut").turn_index
    word = _name_end(trial, turn)
    trial.say("after_cutoff")
    return "taken for whole" if word == "an answer that says so" else word


def too_long(trial: Trial) -> str:
    """The last one: some agents make a summary of all then, and the scripted model's says nothing."""
    since = len(trial.bench.model.requests())
    try:
        return _refused("too_long")(trial)
    except AssertionError:
        told = [str(one["last"]) for one in trial.bench.asked(since) if one["status"] == 200]
        if any("refused_too_long" not in last for last in told):  # it has asked for more than it was asked
            return "compacts by itself"
        raise


TIMED: Final = "first text: cold / spare / warm"
EDGES: Final[dict[str, Callable[[Trial], str]]] = {
    TIMED: first_text,
    "plain command": plain_command,
    "child killed": inside_killed,
    "streamed, then killed": cut_by_kill,
    "streamed, then cancelled": cut_by_cancel,
    "command before a nap": nap,
    "429": _refused("error:429"),
    "529": _refused("error:529"),
    "401": _refused("error:401"),
    "slow stream": slow_stream,
    "cut stream": cut_stream,
    "too long": too_long,
}
