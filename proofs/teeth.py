"""Teeth: bugs are planted in copies of the source, and each must turn a proof or a test red."""

import os
import subprocess
import sys
from pathlib import Path

from proofs.kit.report import Run
from proofs.kit.source import fits, planted
from proofs.planted import BUGS, Bug

SHORT, FULL = 1, 16
LONGEST = 400


def prove(run: Run) -> None:
    """All changes must fit, always; in the short form only some quick ones are run."""
    for bug in BUGS:
        for change in bug.changes:
            fits(run.source, change)
    bugs = [bug for bug in BUGS if bug.quick or not run.short]
    chosen = run.random.sample(bugs, min(run.size, len(bugs))) if run.short else list(bugs[: run.size])
    told: dict[str, str] = {}
    for number, bug in enumerate(chosen):
        folder = run.folder / f"bug-{number}"
        copy = planted(run.source, folder, *bug.changes)
        done = _catch(bug, copy)
        red = done.returncode == 1 and ("RED " in done.stdout or "FAILED" in done.stdout)
        red = red and "do not load" not in done.stdout  # a server that cannot start proves nothing
        last = (done.stdout.strip().splitlines() or [done.stderr[-300:]])[-1]
        run.check(red, f"nothing catches: {bug.name} ({bug.caught} ended {done.returncode}: {last})")
        told[bug.name] = bug.caught if red else "NOT CAUGHT"
        run.progress(f"{number + 1} of {len(chosen)} bugs, {bug.name}: {'red' if red else 'NOT CAUGHT'}", 0)
    run.figure(
        bugs_that_fit=len(BUGS),
        bugs_planted=len(chosen),
        bugs_caught=sum(how != "NOT CAUGHT" for how in told.values()),
        caught_by="; ".join(f"{name}: {how}" for name, how in told.items()),
    )


def _catch(bug: Bug, copy: Path) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHONPATH": str(copy / "src")}
    kind, *rest = bug.caught.split()
    if kind == "prove":
        command = [sys.executable, "-m", "proofs", *rest]
        if "--seed" not in rest:
            command += ["--seed", "5"]
    else:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", kind, *rest]
    return subprocess.run(
        command, cwd=copy, env=env, capture_output=True, text=True, timeout=LONGEST, check=False
    )
