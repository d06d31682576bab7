"""Simulation: the real core on a simulated clock, disk and agents, in thousands of schedules, with faults."""

from proofs.kit.report import Run
from proofs.simulation.batches import Tally, share_out
from proofs.simulation.database import SimDb
from proofs.simulation.plans import Plan, draw_plan
from proofs.simulation.shrink import shrink

SHORT, FULL = 500, 100_000
BATCH = 200
TRACE_LINES = 60


def prove(run: Run) -> None:
    """Schedule number n of a run is that of seed + n, so each can be had alone: `--seed N --size 1`.

    Batches are counted in their order and up to the first violation, so that the report does not depend on
    how many processes there were.
    """
    seeds = range(run.seed, run.seed + run.size)
    total = Tally()
    with share_out(seeds, BATCH, run.workers) as tallies:
        for tally in tallies:
            total.add(tally)
            if total.broken is not None:
                break
            run.progress(f"{total.schedules} schedules, {total.crashes} crashes, {total.faults} faults")
    if total.broken is not None:
        seed = seeds[total.schedules - 1]
        run.violate(
            f"schedule {total.schedules}: {total.broken}; again: ./scripts/prove simulation"
            f" --seed {seed} --size 1"
        )
        _explain(draw_plan(seed))
    run.figure(
        schedules=total.schedules,
        steps=total.steps,
        crashes_and_failed_starts=total.crashes,
        faults=total.faults,
        prompts_heard=total.prompts,
        milliseconds_of_a_schedule=round(total.seconds / total.schedules * 1000, 1),
    )


def _explain(plan: Plan) -> None:
    smaller, outcome = shrink(plan, SimDb())
    print(f"  made smaller, {plan.size} → {smaller.size} things: {outcome.violations[0]}\n{smaller}")
    print("\n".join(f"  {line}" for line in outcome.trace[-TRACE_LINES:]), flush=True)
