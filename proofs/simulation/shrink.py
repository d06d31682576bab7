"""Makes a plan that fails smaller, as long as it still fails in the same way."""

import re
from collections.abc import Iterator
from dataclasses import replace

from proofs.simulation.database import SimDb
from proofs.simulation.plans import Plan
from proofs.simulation.run import Outcome, simulate

MOST_RUNS = 300
ORDERS = 6


def shrink(plan: Plan, db: SimDb) -> tuple[Plan, Outcome]:
    """The smallest failing plan that was found, and its run with a trace."""
    wanted = _kind(simulate(plan, db))
    left = MOST_RUNS
    smaller: Plan | None = plan
    while smaller is not None and left > 0:
        plan, smaller = smaller, None
        for candidate in _candidates(plan):
            for order in range(ORDERS):
                left -= 1
                tried = replace(candidate, order=plan.order + order * 1_000_003)
                if _kind(simulate(tried, db)) == wanted:
                    smaller = tried
                    break
            if smaller is not None or left <= 0:
                break
    return plan, simulate(plan, db, traced=True)


def _candidates(plan: Plan) -> Iterator[Plan]:
    """The plan with one thing left out, large things first."""
    if plan.crashes:
        yield replace(plan, crashes=())
    if plan.faults:
        yield replace(plan, faults=())
    if plan.readers:
        yield replace(plan, readers=())
    for number in range(len(plan.clients)):
        if len(plan.clients) > 1:
            yield replace(plan, clients=plan.clients[:number] + plan.clients[number + 1 :])
    for number, ops in enumerate(plan.clients):
        for at in range(len(ops)):
            fewer = (*plan.clients[:number], ops[:at] + ops[at + 1 :], *plan.clients[number + 1 :])
            yield replace(plan, clients=fewer)
    for name in ("faults", "crashes", "readers"):
        items = getattr(plan, name)
        for at in range(len(items)) if len(items) > 1 else ():
            yield replace(plan, **{name: items[:at] + items[at + 1 :]})
    for number, ops in enumerate(plan.clients):
        for at, op in enumerate(ops):
            words = op.script.split()
            plainer = replace(op, pause=0.0, hang_up=None, flag=False, script=" ".join(words[-1:]))
            if plainer != op:
                new = (*ops[:at], plainer, *ops[at + 1 :])
                yield replace(plan, clients=(*plan.clients[:number], new, *plan.clients[number + 1 :]))


def _kind(outcome: Outcome) -> str | None:
    """What went wrong, without the names and numbers that change with the plan."""
    if not outcome.violations:
        return None
    return re.sub(r"id\d+-\w+|'[^']*'|\d+", "#", outcome.violations[0])[:60]
