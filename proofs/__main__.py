"""The proofs as commands: `python -m proofs NAME [--short] [--seed N] [--size N] [--record]`."""

import argparse
import importlib
import os
import random
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

from proofs.kit.report import Run
from proofs.kit.server import ROOT
from proofs.kit.table import bugs_table, table, write_tables
from proofs.noise.page import write_page

PROOFS = {
    "kills": "kill_loop",
    "syscalls": "syscalls",
    "power": "power",
    "faults": "faults",
    "readers": "readers",
    "liars": "liars",
    "races": "races",
    "duplicates": "duplicates",
    "budgets": "budgets",
    "webhooks": "webhooks",
    "schedules": "schedules",
    "faces": "faces",
    "nodes": "nodes.proof",
    "leases": "leases.proof",
    "machine": "machine",
    "simulation": "simulation.proof",
    "linear": "linear.proof",
    "soak": "soak",
    "stress": "stress",
    "noise": "noise.proof",
    "teeth": "teeth",
}


def run_one(
    name: str,
    *,
    seed: int,
    size: int | None,
    short: bool,
    source: Path = ROOT,
    folder: Path | None = None,
    only: tuple[str, ...] = (),
    workers: int | None = None,
) -> Run:
    module = importlib.import_module(f"proofs.{PROOFS[name]}")
    base = folder or Path(tempfile.mkdtemp(prefix=f"clawdforge-{name}-"))
    run = Run(
        name=name,
        seed=seed,
        size=size if size is not None else (module.SHORT if short else module.FULL),
        short=short,
        folder=base,
        source=source,
        only=only,
        workers=workers or os.cpu_count() or 1,
    )
    print(f"{name}: {(module.__doc__ or name).splitlines()[0]}", flush=True)
    try:
        module.prove(run)
    except Exception as error:  # a proof that breaks off has proven nothing
        traceback.print_exc()
        run.violate(f"broke off: {error!r}"[:2000])
    finally:
        run.print_summary()
        if folder is None and not run.violations:
            shutil.rmtree(base, ignore_errors=True)
        elif run.violations:
            print(f"  what it left behind: {base}")
    return run


def main() -> int:
    parser = argparse.ArgumentParser(prog="prove", description="Prove that the server keeps its promise.")
    parser.add_argument("name", choices=[*PROOFS, "all", "table"])
    parser.add_argument("--seed", type=int, help="what chance begins with; printed with every result")
    parser.add_argument("--size", type=int, help="kills, states, turns …: what the proof counts")
    parser.add_argument("--short", action="store_true", help="the form that runs with the tests")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the figures in proofs/results, and show them",
    )
    parser.add_argument("--source", type=Path, default=ROOT, help="the source tree to prove")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        help="of teeth, syscalls or noise: the parts with this word in their name; of races: a deed, a level;"
        " of nodes: a way",
    )
    parser.add_argument(
        "--workers", type=int, help="of simulation and races: who share the work; as many as there are cores"
    )
    args = parser.parse_args()
    if args.name == "table":
        print(f"{table()}\n\n{bugs_table()}")
        return 0
    bad = 0
    for name in PROOFS if args.name == "all" else [args.name]:
        seed = args.seed if args.seed is not None else random.randrange(10**6)
        run = run_one(
            name,
            seed=seed,
            size=args.size,
            short=args.short,
            source=args.source.resolve(),
            only=tuple(args.only),
            workers=args.workers,
        )
        bad += bool(run.violations)
        if args.record:
            run.record()
            write_tables()
            write_page()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
