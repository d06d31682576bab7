"""Simulation: the real core on a simulated clock, disk and agents, in thousands of schedules, with faults."""

import time

from proofs.kit.report import Run
from proofs.simulation.plans import Plan, draw_plan
from proofs.simulation.run import simulate
from proofs.simulation.shrink import shrink
from proofs.simulation.world import Machine

SHORT, FULL = 300, 100_000
TRACE_LINES = 60


def prove(run: Run) -> None:
    """Schedule number n of a run is that of seed + n, so each can be had alone: `--seed N --size 1`."""
    machine = Machine()
    steps = crashes = faults = prompts = done = 0
    began = time.process_time()
    for seed in range(run.seed, run.seed + run.size):
        plan = draw_plan(seed)
        outcome = simulate(plan, machine)
        done += 1
        steps += outcome.steps
        crashes += outcome.lives - 1
        faults += outcome.struck
        prompts += outcome.prompts
        if outcome.violations:
            run.violate(
                f"schedule {done}: {outcome.violations[0]}; again: ./scripts/prove simulation"
                f" --seed {seed} --size 1"
            )
            _explain(plan, machine)
            break
        run.progress(f"{done} schedules, {crashes} crashes, {faults} faults")
    run.figure(
        schedules=done,
        steps=steps,
        crashes_and_failed_starts=crashes,
        faults=faults,
        prompts_heard=prompts,
        milliseconds_of_a_schedule=round((time.process_time() - began) / done * 1000, 1),
    )


def _explain(plan: Plan, machine: Machine) -> None:
    smaller, outcome = shrink(plan, machine)
    print(f"  made smaller, {plan.size} → {smaller.size} things: {outcome.violations[0]}\n{smaller}")
    print("\n".join(f"  {line}" for line in outcome.trace[-TRACE_LINES:]), flush=True)
