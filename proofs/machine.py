"""A state machine over the public API: whatever is done in whatever order, the server is as a model says."""

import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ParamSpec

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from proofs.kit.report import Run
from proofs.kit.server import Server, Stuck, zygote

SHORT, FULL = 2, 150
STEPS_SHORT, STEPS = 10, 30
RECALL = "recall all"
MOST_RECALLS = 5
"""Each answer holds all answers before it, in quotes in quotes: it is twice as long, and soon megabytes."""

MOST_TALKS = 4
Exchange = tuple[str, str]
P = ParamSpec("P")
PICK = st.integers(min_value=0, max_value=MOST_TALKS - 1)


@dataclass
class Talk:
    """What one session must be like: who said what, what an undo took, whether it is open."""

    session: str
    keep: bool
    said: list[Exchange] = field(default_factory=list)
    taken: list[list[Exchange]] = field(default_factory=list)
    closed: bool = False
    forgotten: set[str] = field(default_factory=set)


class World:
    """The server under test, shared by all examples of a run."""

    def __init__(self, run: Run, server: Server) -> None:
        self.run = run
        self.server = server
        self.token = server.token()
        self.steps = 0
        self.kills = 0
        self.wrong = ""
        self._words = 0

    def word(self) -> str:
        self._words += 1
        return f"w{self._words:06}"

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return self.server.call(method, path, body, self.token)

    def good(self, method: str, path: str, body: Any = None) -> Any:
        status, reply = self.call(method, path, body)
        assert 200 <= status < 300, f"{method} {path}: {status} {reply}"
        return reply


def machine(world: World) -> type[RuleBasedStateMachine]:
    def note_failure(step: Callable[P, None]) -> Callable[P, None]:
        """What went wrong first. Hypothesis does it again, and does not tell when it goes right then."""

        @functools.wraps(step)
        def stepped(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                step(*args, **kwargs)
            except (AssertionError, Stuck) as error:
                world.wrong = world.wrong or f"{step.__name__}: {error}"
                raise

        return stepped

    class Sessions(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.talks: list[Talk] = []

        def pick(self, number: int) -> Talk:
            return self.talks[number % len(self.talks)]

        @initialize(keep=st.booleans())
        @note_failure
        def begin(self, keep: bool) -> None:
            self.create(keep)

        @rule(keep=st.booleans())
        @note_failure
        def create(self, keep: bool) -> None:
            if len(self.talks) < MOST_TALKS:
                body = {"agent": "scripted", "retention": "keep" if keep else "ttl"}
                self.talks.append(Talk(world.good("POST", "/sessions", body)["session_id"], keep))

        @rule(number=PICK)
        @note_failure
        def prompt(self, number: int) -> None:
            talk, word = self.pick(number), world.word()
            status, reply = world.call("POST", f"/sessions/{talk.session}/turn", {"prompt": f"echo {word}"})
            if talk.closed:
                assert status == 410, (status, reply)
                return
            assert (status, reply["outcome"]) == (200, "completed"), reply
            _add_exchanges(talk, [(f"echo {word}", word)])

        @rule(number=PICK, count=st.integers(min_value=2, max_value=4))
        @note_failure
        def queue(self, number: int, count: int) -> None:
            talk = self.pick(number)
            if talk.closed:
                return
            words = [world.word() for _ in range(count)]
            path = f"/sessions/{talk.session}/turns"
            indexes = [world.good("POST", path, {"prompt": f"echo {w}"})["turn_index"] for w in words]
            assert indexes == list(range(indexes[0], indexes[0] + count)), indexes
            _wait_ended(world, talk)
            _add_exchanges(talk, [(f"echo {w}", w) for w in words])

        @rule(number=PICK)
        @note_failure
        def cancel(self, number: int) -> None:
            talk, word = self.pick(number), world.word()
            if talk.closed:
                return
            prompt = f"echo {word}\nhang"
            world.good("POST", f"/sessions/{talk.session}/turns", {"prompt": prompt})
            _wait(lambda: any(e["type"] == "text" and e["content"] == word for e in _events(world, talk)))
            reply = world.good("POST", f"/sessions/{talk.session}/cancel", {})
            assert reply["cancelled"] == 1, reply
            _wait_ended(world, talk)
            _add_exchanges(talk, [(prompt, word)])

        @rule(number=PICK, count=st.integers(min_value=1, max_value=3), look=st.booleans())
        @note_failure
        def undo(self, number: int, count: int, look: bool) -> None:
            talk = self.pick(number)
            status, reply = world.call("POST", f"/sessions/{talk.session}/undo", {"turns": count})
            if talk.closed or not talk.said:
                assert status == (410 if talk.closed else 409), (status, reply)
                return
            if status == 409:  # more than there is
                assert count > len(talk.said), reply
                return
            assert status == 200, reply
            count = min(count, len(talk.said))
            talk.said, taken = talk.said[:-count], talk.said[-count:]
            talk.taken.append(taken)
            talk.forgotten |= _words(taken)
            if look:
                self.recall(number)

        @rule(number=PICK, look=st.booleans())
        @note_failure
        def redo(self, number: int, look: bool) -> None:
            talk = self.pick(number)
            status, reply = world.call("POST", f"/sessions/{talk.session}/redo", {})
            if talk.closed or not talk.taken:
                assert status == (410 if talk.closed else 409), (status, reply)
                return
            assert status == 200, reply
            back = talk.taken.pop()
            talk.said += back
            talk.forgotten -= _words(back)
            if look:
                self.recall(number)

        @rule(number=PICK)
        @note_failure
        def fork(self, number: int) -> None:
            talk = self.pick(number)
            if talk.closed or len(self.talks) >= MOST_TALKS:
                return
            reply = world.good("POST", f"/sessions/{talk.session}/fork", {})
            twin = Talk(reply["session_id"], reply["retention"] == "keep", list(talk.said))
            twin.forgotten = set(talk.forgotten)
            self.talks.append(twin)

        @rule(number=PICK)
        @note_failure
        def recall(self, number: int) -> None:
            """The agent's own memory: all that was said, and nothing that was taken back."""
            talk = self.pick(number)
            if talk.closed or [prompt for prompt, _ in talk.said].count(RECALL) >= MOST_RECALLS:
                return
            answer = self.ask(talk)
            if any(word not in answer for word in _words(talk.said)):  # a transcript came along with it
                answer = self.ask(talk)
            missing = [word for word in _words(talk.said) if word not in answer]
            assert not missing, f"the agent has forgotten {missing}: {answer[:500]}"

        def ask(self, talk: Talk) -> str:
            reply = world.good("POST", f"/sessions/{talk.session}/turn", {"prompt": RECALL})
            answer = "".join(e["content"] for e in reply["events"] if e["type"] == "text")
            ghosts = [word for word in talk.forgotten if word in answer]
            assert not ghosts, f"the agent remembers {ghosts}: {answer[:500]}"
            _add_exchanges(talk, [(RECALL, answer)])
            return answer

        @rule(number=PICK)
        @note_failure
        def close(self, number: int) -> None:
            talk = self.pick(number)
            world.good("DELETE", f"/sessions/{talk.session}")
            talk.closed = True

        @rule(number=PICK)
        @note_failure
        def reopen(self, number: int) -> None:
            talk = self.pick(number)
            if talk.closed:
                world.good("POST", f"/sessions/{talk.session}/reopen", {})
                talk.closed = False

        @rule()
        @note_failure
        def sweep(self) -> None:
            """Sessions that are not kept are closed; here they are idle as soon as nothing runs."""
            status, reply = world.server.call("POST", "/admin/sweep")
            assert status == 200, reply
            for talk in self.talks:
                state = world.good("GET", f"/sessions/{talk.session}")
                if not talk.keep and state["closed_at"] is not None:
                    talk.closed = True

        @rule(dice=st.integers(min_value=0, max_value=3))
        @note_failure
        def kill(self, dice: int) -> None:
            if dice:
                return
            world.kills += 1
            world.server.kill()
            world.server.start()

        @rule(number=PICK, share=st.floats(min_value=0, max_value=1))
        @note_failure
        def reconnect(self, number: int, share: float) -> None:
            talk = self.pick(number)
            whole = _events(world, talk)
            after = int(share * len(whole))
            assert _events(world, talk, after) == whole[after:], f"resuming after {after} shows another past"

        @invariant()
        @note_failure
        def as_the_model_says(self) -> None:
            world.steps += 1
            world.run.progress(f"{world.steps} steps, {world.kills} kills")
            for talk in self.talks:
                seen = [(row["role"], row["content"]) for row in _messages(world, talk)]
                said = [pair for p, a in talk.said for pair in (("user", p), ("assistant", a))]
                assert seen == said, f"{seen} is not {said}"
                state = world.good("GET", f"/sessions/{talk.session}")
                assert (state["closed_at"] is not None) == talk.closed, state
                seqs = [event["seq"] for event in _events(world, talk)]
                assert seqs == list(range(1, state["head"] + 1)), "the log has gaps"

        def teardown(self) -> None:
            for talk in self.talks:
                world.call("DELETE", f"/sessions/{talk.session}")

    return Sessions


def prove(run: Run) -> None:
    env = {
        "CLAWDFORGE_SESSION_TTL_SECS": "0",
        "CLAWDFORGE_SWEEP_SECS": "100000",
        "CLAWDFORGE_HOME_COPIES": "60",
    }
    with zygote(run.source) as made, Server(run.folder, made, source=run.source, env=env) as server:
        server.start()
        world = World(run, server)
        settings = hypothesis.settings(
            max_examples=run.size,
            stateful_step_count=STEPS_SHORT if run.short else STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=(hypothesis.Phase.generate,),
        )
        seeded = hypothesis.seed(run.seed)(machine(world))
        try:
            run_state_machine_as_test(seeded, settings=settings)
        except (AssertionError, Stuck, hypothesis.errors.Flaky) as error:
            run.violate((world.wrong or f"{error}")[:1500])
        run.figure(examples=run.size, steps=world.steps, kills=world.kills)


def _add_exchanges(talk: Talk, exchanges: Iterable[Exchange]) -> None:
    talk.said += exchanges
    talk.taken.clear()


def _words(exchanges: Iterable[Exchange]) -> set[str]:
    found = (part for prompt, _ in exchanges for part in prompt.split())
    return {part for part in found if part.startswith("w") and part[1:].isdigit()}


def _events(world: World, talk: Talk, after: int = 0) -> list[Any]:
    found: list[Any] = []
    path = f"/sessions/{talk.session}/events"
    while page := world.good("GET", f"{path}?after={after + len(found)}&limit=1000")["events"]:
        found += page
    return found


def _messages(world: World, talk: Talk) -> list[Any]:
    """A page ends early when it becomes large: an agent that is asked for all it knows repeats itself."""
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = world.good("GET", f"/sessions/{talk.session}/messages?after={after}&limit=1000")
        found += page["messages"]
        after = page["next"]
    return found


def _wait_ended(world: World, talk: Talk) -> None:
    def ended() -> bool:
        turns = world.good("GET", f"/sessions/{talk.session}/turns?limit=1000")["turns"]
        return all(turn["state"] == "ended" for turn in turns)

    _wait(ended)


def _wait(found: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            raise Stuck("what was waited for did not happen")
        time.sleep(0.01)
