"""What happens in one run, as plain data drawn from a seed: so it can be replayed and made smaller."""

import random
from dataclasses import dataclass, replace

APPS = ("red", "blue")
POLICIES = ("queue", "queue", "queue", "reject", "interrupt", "steer", "rollback")
ENDS = ("done",) * 12 + ("die", "hang", "deaf", "refuse")

FAULTS = {
    "store refuses": 15,  # a commit fails and nothing is written
    "store in doubt": 15,  # a commit fails, and yet everything is written
    "read fails": 50,
    "no start": 4,  # the agent does not start
    "stuck start": 4,  # and takes long to do it
    "stuck close": 3,  # the agent takes very long to end
    "failed close": 3,
    "no copy": 4,  # the home cannot be copied
    "copy lost": 5,  # the copy cannot be written
    "home fails": 7,
    "no snapshot": 7,
    "slow": 80,  # any wait takes seconds
}
"""Each kind of fault, and among how many moments of its kind it strikes one."""


@dataclass(frozen=True, slots=True)
class Op:
    """One request of a client.

    `session` is a slot, `number` a turn (of a prompt: the head that it expects; of a retry: 1 with files),
    and `hang_up` is how long the client waits at most.
    """

    kind: str
    session: int
    pause: float = 0.0
    policy: str = "queue"
    script: str = ""
    number: int = 0
    flag: bool = False
    hang_up: float | None = None

    def __str__(self) -> str:
        details = [f"s{self.session}"]
        if self.kind == "submit":
            details += [self.policy, repr(self.script)]
        if self.number:
            details.append(f"n={self.number}")
        if self.flag:
            details.append("+")
        if self.hang_up is not None:
            details.append(f"hangs up after {self.hang_up:.3f} s")
        return f"{self.kind}({', '.join(details)})"


@dataclass(frozen=True, slots=True)
class Fault:
    """The moment number `nth` of a kind goes wrong."""

    kind: str
    nth: int

    def __str__(self) -> str:
        return f"{self.kind} no. {self.nth}"


@dataclass(frozen=True, slots=True)
class Plan:
    """`order` is what the schedule is drawn from; the rest is what clients and the world do."""

    order: int
    sessions: tuple[tuple[str, str, str], ...]  # app, permission mode, what to do about an interrupted turn
    clients: tuple[tuple[Op, ...], ...]
    readers: tuple[int, ...] = ()  # the slots that they follow
    faults: tuple[Fault, ...] = ()
    crashes: tuple[int, ...] = ()  # steps
    seats: int = 2
    shuffle: float = 1.0
    pace: float = 0.005  # seconds that a wait takes, on average

    @property
    def size(self) -> int:
        return sum(map(len, self.clients)) + len(self.readers) + len(self.faults) + len(self.crashes)

    def __str__(self) -> str:
        lines = [f"  order {self.order}, {self.seats} seats, shuffle {self.shuffle}, pace {self.pace}"]
        lines += [
            f"  session s{n}: app {app}, {mode}, on_interrupt {then}"
            for n, (app, mode, then) in enumerate(self.sessions)
        ]
        lines += [f"  client {n}: " + "; ".join(map(str, ops)) for n, ops in enumerate(self.clients) if ops]
        if self.readers:
            lines.append("  readers of: " + ", ".join(f"s{slot}" for slot in self.readers))
        if self.faults:
            lines.append("  faults: " + ", ".join(map(str, self.faults)))
        if self.crashes:
            lines.append("  crashes at steps: " + ", ".join(map(str, self.crashes)))
        return "\n".join(lines)


KINDS = (
    ("submit", 34),
    ("wait", 6),
    ("cancel", 10),
    ("stop", 4),
    ("withdraw", 3),
    ("undo", 8),
    ("redo", 4),
    ("retry", 5),
    ("fork", 14),
    ("clear", 2),
    ("decide", 8),
    ("close", 4),
    ("reopen", 4),
    ("delete", 1),
    ("sweep", 2),
    ("read", 4),
    ("intrude", 3),
)

NUMBERED = ("undo", "retry", "stop", "withdraw", "wait", "fork")


def draw_plan(seed: int) -> Plan:
    """The plan of a seed.

    Half of all plans have no fault at all, since order alone breaks enough. Most have only some kinds of
    requests: so what seldom comes together in a broad mixture comes together often in some plan.
    """
    chance = random.Random(seed)
    sort = chance.random()
    if sort < 0.12:
        return _draw_boundary_plan(chance, seed)
    if sort < 0.2:
        return _draw_held_plan(chance, seed)
    count = chance.choice((1, 1, 2, 2, 3))
    modes = ("approve_all", "ask", "ask", "approve_reads", "deny_all")
    sessions = tuple(
        (chance.choice(APPS), chance.choice(modes), chance.choice(("hold", "hold", "continue", "retry")))
        for _ in range(count)
    )
    kinds = dict(KINDS)
    if chance.random() < 0.7:
        rest = sorted(set(kinds) - {"submit"})
        kinds = {kind: kinds[kind] for kind in ("submit", *chance.sample(rest, chance.randrange(1, 6)))}
    clients = tuple(_draw_client(chance, count, kinds) for _ in range(chance.randrange(1, 5)))
    readers = tuple(chance.randrange(count) for _ in range(chance.choice((0, 0, 1, 2))))
    faults: list[Fault] = []
    if chance.random() < 0.5:
        for kind in chance.sample(sorted(FAULTS), chance.randrange(1, 7)):
            moments = FAULTS[kind]
            if chance.random() < 0.3:
                faults += [Fault(kind, nth) for nth in range(1, min(moments, 12) + 1)]
            else:
                faults += [Fault(kind, chance.randrange(1, moments + 1)) for _ in range(3)]
    crashes = tuple(sorted(chance.randrange(10, 400) for _ in range(chance.choice((0, 0, 0, 1, 1, 2)))))
    return Plan(
        order=seed,
        sessions=sessions,
        clients=clients,
        readers=readers,
        faults=tuple(sorted(set(faults), key=str)),
        crashes=crashes,
        seats=chance.choice((1, 2, 2, 3)),
        shuffle=chance.choice((0.0, 0.3, 1.0, 1.0)),
        pace=chance.choice((0.001, 0.005, 0.005, 0.03)),
    )


def _draw_boundary_plan(chance: random.Random, seed: int) -> Plan:
    """Two turns, and then whatever uses the home or the history while it is being copied, and that fails."""
    kinds = ("fork", "fork", "undo", "retry", "close", "delete", "sweep", "submit")
    after = tuple(
        Op(chance.choice(kinds), 0, number=2, flag=chance.random() < 0.7, script="done")
        for _ in range(chance.randrange(1, 4))
    )
    turns = tuple(Op("submit", 0, script="say done", flag=True) for _ in range(2))
    kind = chance.choice(("no copy", "copy lost", "no snapshot", "home fails"))
    return Plan(
        order=seed,
        sessions=(("red", "approve_all", "hold"),),
        clients=((*turns, *(replace(op, number=0) if op.kind == "submit" else op for op in after)),),
        faults=tuple(Fault(kind, nth) for nth in range(1, 9)),
        shuffle=chance.choice((0.0, 1.0)),
    )


def _draw_held_plan(chance: random.Random, seed: int) -> Plan:
    """Files are put back and homes are swept while others prompt: what comes to a held session must wait."""
    turns = tuple(Op("submit", 0, script="say done", flag=True) for _ in range(2))
    changes = tuple(
        Op(chance.choice(("undo", "undo", "redo", "retry", "sweep")), 0, number=1, flag=True)
        for _ in range(chance.randrange(1, 4))
    )
    prompts = tuple(
        Op(
            "submit",
            0,
            pause=chance.choice((0.0, 0.01, 0.03, 0.1)),
            policy=chance.choice(("queue", "queue", "reject", "interrupt")),
            script="say done",
            flag=chance.random() < 0.5,
        )
        for _ in range(chance.randrange(2, 6))
    )
    return Plan(
        order=seed,
        sessions=(("red", "approve_all", "hold"),),
        clients=((*turns, *changes), prompts),
        shuffle=chance.choice((0.0, 1.0)),
    )


def _draw_client(chance: random.Random, sessions: int, kinds: dict[str, int]) -> tuple[Op, ...]:
    """Half of them are patient: they wait for each answer and then do the next thing at once."""
    ops = tuple(_draw_op(chance, sessions, kinds) for _ in range(chance.randrange(1, 7)))
    if chance.random() < 0.5:
        return ops
    at = chance.randrange(sessions)
    calm = tuple(replace(op, session=at, pause=0.0, number=min(op.number, 2)) for op in ops)
    return tuple(
        replace(op, flag=True, number=0, hang_up=None, script="say done") if op.kind == "submit" else op
        for op in calm
    )


def _draw_op(chance: random.Random, sessions: int, kinds: dict[str, int]) -> Op:
    kind = chance.choices(list(kinds), list(kinds.values()))[0]
    op = Op(
        kind,
        chance.randrange(sessions + 1) if chance.random() < 0.2 else chance.randrange(sessions),
        pause=chance.choice((0.0, 0.0, 0.002, 0.01, 0.05, 0.3)),
        number=chance.randrange(1, 4) if kind in NUMBERED else 0,
        flag=chance.random() < (0.6 if kind == "fork" else 0.3),
    )
    if kind == "submit":
        stale = int(chance.random() < 0.1)
        op = replace(op, policy=chance.choice(POLICIES), script=_draw_script(chance), number=stale)
    if chance.random() < 0.12:
        op = replace(op, hang_up=chance.expovariate(50))
    return op


def _draw_script(chance: random.Random) -> str:
    """What the agent does with the prompt: chunks to say, questions to ask, and how it ends."""
    words = ["say"] * chance.randrange(4)
    if chance.random() < 0.3:
        words.insert(chance.randrange(len(words) + 1), "ask")
    return " ".join([*words, chance.choice(ENDS)])
