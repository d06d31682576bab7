"""Decides whether a recorded history is linearizable: exactly, and within a bound.

Points of time are gone through in order, with all configurations in which the object can be: a state, and how
far each open operation has got. An operation takes effect only when an answer needs it to (Lowe, "Testing for
linearizability", 2017), and configurations that are alike are followed once.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

S = TypeVar("S", bound=Hashable)
Stage: TypeAlias = tuple[Any, ...] | None
FIRST: Final[tuple[Any, ...]] = ()
DONE: Final = None
"""The stage of an operation that has taken effect and can be answered."""
MOST = 400_000
AHEAD = 8  # as many operations to come are looked at, to see early that a way leads nowhere
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Op:
    """One operation and what is known of it.

    `answered` and `until` are points of time; `until` is where an operation without an answer can no longer
    take effect. `must` is true of what certainly happened, though nobody was answered.
    """

    number: int
    client: str
    kind: str
    invoked: int
    given: Mapping[str, Any]
    answered: int | None = None
    answer: Any = None
    until: int = NEVER
    must: bool = False

    @property
    def is_sure(self) -> bool:
        return self.must or self.answered is not None

    @property
    def end(self) -> int:
        return self.until if self.answered is None else self.answered


class Model(Protocol[S]):
    """What the object promises, one step at a time."""

    def begin(self) -> S:
        """The state before the first operation."""
        ...

    def steps(self, state: S, op: Op, stage: tuple[Any, ...]) -> Iterable[tuple[S, Stage]]:
        """What this operation can do next. The last step fits the answer, where there is one."""
        ...

    def moves(self, state: S) -> Iterable[S]:
        """What can happen by itself."""
        ...

    def can_still(self, state: S, op: Op, stage: tuple[Any, ...]) -> bool:
        """False only if this operation can never get its answer from here on."""
        ...


class Undecided(Exception):
    """The history is too hard for the bound. That is no proof of anything."""


Config: TypeAlias = tuple[S, frozenset[tuple[int, tuple[Any, ...]]]]


class Checker(Generic[S]):
    def __init__(self, model: Model[S], ops: Iterable[Op], most: int = MOST) -> None:
        self.seen = 0
        self.states: Sequence[S] = ()  # in which the object can be after all of it
        self._model = model
        self._ops = {op.number: op for op in ops}
        self._most = most
        self._ahead: Sequence[Op] = ()

    def holds(self) -> bool:
        """Whether there is an order of the operations that explains every answer."""
        configs: set[Config[S]] = {(self._model.begin(), frozenset())}
        to_come = sorted((op for op in self._ops.values() if op.is_sure), key=lambda op: -op.invoked)
        for time, is_end, number in self._points():
            while to_come and to_come[-1].invoked <= time:
                to_come.pop()
            self._ahead = to_come[-AHEAD:]
            if is_end:
                configs = self._pass_end(configs, self._ops[number])
            else:
                configs = {(state, open_ | {(number, FIRST)}) for state, open_ in configs}
        self.states = list({state for state, _ in configs})
        return bool(configs)

    def _points(self) -> list[tuple[int, bool, int]]:
        points = [(op.invoked, False, op.number) for op in self._ops.values()]
        return sorted(points + [(op.end, True, op.number) for op in self._ops.values() if op.end < NEVER])

    def _pass_end(self, configs: set[Config[S]], op: Op) -> set[Config[S]]:
        """All configurations in which this operation is over: just now, or before.

        One that nobody was answered may have been done in part, or not at all.
        """
        found: set[Config[S]] = set() if op.is_sure else {_leave(config, op) for config in configs}
        seen = set(configs)
        left = list(configs)
        while left:
            config = left.pop()
            stage = next((stage for number, stage in config[1] if number == op.number), DONE)
            if stage is DONE:
                found.add(config)
                continue
            if stage != FIRST and not op.is_sure:
                found.add(_leave(config, op))
            for following in self._follow(config):
                if following not in seen:
                    seen.add(following)
                    left.append(following)
            if self.seen + len(seen) > self._most:
                raise Undecided(f"more than {self._most} configurations")
        self.seen += len(seen)
        return found

    def _follow(self, config: Config[S]) -> Iterable[Config[S]]:
        """What can come next, without what leads nowhere.

        An operation that gets its answer here and changes nothing is done at once: it would change nothing
        later either, so that waiting with it opens no way.
        """
        state, open_ = config
        following: list[Config[S]] = []
        for one in open_:
            op = self._ops[one[0]]
            rest = open_ - {one}
            for changed, stage in self._model.steps(state, op, one[1]):
                if stage is not DONE:
                    following.append((changed, rest | {(one[0], stage)}))
                elif changed == state and op.answered is not None:
                    return [(state, rest)]
                elif changed != state or op.must:
                    following.append((changed, rest))
        following += [(moved, open_) for moved in self._model.moves(state)]
        return [one for one in following if self._is_open(one)]

    def _is_open(self, config: Config[S]) -> bool:
        state, open_ = config
        can_still = self._model.can_still
        return all(can_still(state, op, FIRST) for op in self._ahead) and all(
            can_still(state, self._ops[number], stage) for number, stage in open_
        )


def _leave(config: Config[S], op: Op) -> Config[S]:
    """The configuration without this operation, which can do no more."""
    state, open_ = config
    return state, frozenset(one for one in open_ if one[0] != op.number)
