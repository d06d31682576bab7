"""Runs schedules in batches, shared out among processes, and counts what came of them.

As a program it is one of them: `python -m proofs.simulation.batches FIRST SIZE BATCH WORKERS NUMBER`.
"""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from proofs.kit.server import ROOT
from proofs.simulation.database import SimDb
from proofs.simulation.plans import draw_plan
from proofs.simulation.run import Outcome, simulate

COLLECT_EVERY = 50


@dataclass
class Tally:
    """What some schedules came to. Only the last one may have broken something: `broken` says what."""

    schedules: int = 0
    steps: int = 0
    crashes: int = 0
    faults: int = 0
    prompts: int = 0
    seconds: float = 0.0
    broken: str | None = None

    def count(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.steps += outcome.steps
        self.crashes += outcome.lives - 1
        self.faults += outcome.struck
        self.prompts += outcome.prompts
        self.broken = outcome.violations[0] if outcome.violations else None

    def add(self, other: "Tally") -> None:
        self.schedules += other.schedules
        self.steps += other.steps
        self.crashes += other.crashes
        self.faults += other.faults
        self.prompts += other.prompts
        self.seconds += other.seconds
        self.broken = other.broken


@contextmanager
def share_out(seeds: range, batch: int, workers: int) -> Iterator[Iterator[Tally]]:
    """The tallies of all batches, in their order. The processes take turns: each knows which are its own."""
    batches = _cut(seeds, batch)
    workers = min(workers, len(batches))
    if workers == 1:
        yield map(run_batch, batches)
        return
    with ExitStack() as stack:
        processes = []
        for number in range(workers):
            numbers = (seeds.start, len(seeds), batch, workers, number)
            process = subprocess.Popen(
                [sys.executable, "-m", "proofs.simulation.batches", *map(str, numbers)],
                stdout=subprocess.PIPE,
                cwd=ROOT,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        yield (_read_tally(processes[number % workers]) for number in range(len(batches)))


def run_batch(seeds: range) -> Tally:
    """Run these schedules, up to the first that breaks something."""
    began = time.process_time()
    db = SimDb()
    tally = Tally()
    with _collecting_seldom():
        for seed in seeds:
            tally.count(simulate(draw_plan(seed), db))
            if tally.broken is not None:
                break
            if tally.schedules % COLLECT_EVERY == 0:
                gc.collect()
    tally.seconds = time.process_time() - began
    return tally


def _cut(seeds: range, batch: int) -> list[range]:
    return [seeds[at : at + batch] for at in range(0, len(seeds), batch)]


def _read_tally(process: subprocess.Popen[str]) -> Tally:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise RuntimeError(f"a process of the simulation ended with exit code {process.wait()}")
    return Tally(**json.loads(line))


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Lives that are over are garbage in circles; to look for it all the time costs more than its memory."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def main(first: int, size: int, batch: int, workers: int, number: int) -> None:
    gc.freeze()  # what the modules hold is no garbage, and looking through it took a twentieth of the time
    for seeds in _cut(range(first, first + size), batch)[number::workers]:
        print(json.dumps(asdict(run_batch(seeds))), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
