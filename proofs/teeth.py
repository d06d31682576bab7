"""Teeth: bugs are planted in copies of the source, and each must turn a proof or a test red."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from proofs.kit.report import Run
from proofs.kit.server import processes
from proofs.kit.source import check_fits, plant
from proofs.planted import BUGS as OTHER_BUGS
from proofs.planted import Bug
from proofs.planted_faces import FACE_BUGS
from proofs.planted_linear import LINEAR_BUGS
from proofs.planted_nodes import NODE_BUGS
from proofs.planted_orders import ORDER_BUGS

BUGS = (*OTHER_BUGS, *ORDER_BUGS, *LINEAR_BUGS, *FACE_BUGS, *NODE_BUGS)
SHORT, FULL = 1, len(BUGS)
LONGEST = 600
SIDE_BY_SIDE = 2
NO_START = ("do not load", 'Stuck("the server died', "Stuck('the server died", "the server's start did not")
"""A server that cannot start is no bug caught: the change itself is broken."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a command on a copy: red, green, or unusable."""

    colour: str
    words: str


def prove(run: Run) -> None:
    """All changes must fit, always; in the short form only some quick ones are run.

    A command that is to catch a bug must be green without it, or its red says nothing.
    """
    for bug in BUGS:
        for change in bug.changes:
            check_fits(run.source, change)
    bugs = choose(run)
    commands = sorted({bug.caught for bug in bugs})
    healthy = plant(run.source, run.folder / "healthy")
    results: dict[str, str] = {}
    with ThreadPoolExecutor(1 if run.short else SIDE_BY_SIDE) as pool:
        for command, verdict in zip(commands, pool.map(lambda c: _try(c, healthy), commands), strict=True):
            good = run.check(verdict.colour == "green", f"without a bug, {command} is {verdict}")
            run.progress(f"without a bug: {command}: {'green' if good else verdict}", 0)
        verdicts = pool.map(lambda pair: _try_planted(run, *pair), enumerate(bugs))
        for number, (bug, verdict) in enumerate(zip(bugs, verdicts, strict=True)):
            red = run.check(verdict.colour == "red", f"nothing catches: {bug.name} ({bug.caught}: {verdict})")
            results[bug.name] = bug.caught if red else "NOT CAUGHT"
            words = f"{verdict.colour}, {verdict.words[:150]}"
            run.progress(f"{number + 1} of {len(bugs)} bugs, {bug.name}: {words}", 0)
    run.figure(
        bugs_that_fit=len(BUGS),
        bugs_planted=len(bugs),
        bugs_caught=sum(how != "NOT CAUGHT" for how in results.values()),
        caught_by="; ".join(f"{name}: {how}" for name, how in results.items()),
    )


def choose(run: Run) -> list[Bug]:
    """The bugs named with `--only`; else all, or a random choice of the quick ones in the short form."""
    if run.only:
        bugs = [bug for bug in BUGS if any(word in bug.name for word in run.only)]
        if not bugs:
            raise ValueError(f"no bug has {run.only} in its name; there are: {[bug.name for bug in BUGS]}")
        return bugs
    if run.short:
        return run.random.sample([bug for bug in BUGS if bug.quick], run.size)
    return list(BUGS[: run.size])


def _try_planted(run: Run, number: int, bug: Bug) -> Verdict:
    copy = plant(run.source, run.folder / f"bug-{number}", *bug.changes)
    verdict = _try(bug.caught, copy)
    _end_survivors(copy)
    if verdict.colour == "red":
        shutil.rmtree(copy)
    return verdict


def _end_survivors(copy: Path) -> None:
    """Some bugs leave processes behind, which is how they are caught."""
    for pid, line in processes():
        if os.fsencode(copy) in line:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _try(caught: str, copy: Path) -> Verdict:
    env = {**os.environ, "PYTHONPATH": str(copy / "src")}
    kind, *rest = caught.split()
    if kind == "prove":
        command = [sys.executable, "-m", "proofs", *rest]
        if "--seed" not in rest:
            command += ["--seed", "5"]
    else:
        # Two run side by side in the healthy copy, and pytest empties its folder when it starts.
        folder = copy / f"tmp-{crc32(caught.encode()):08x}"
        options = ["-x", "-q", "-p", "no:cacheprovider", "--basetemp", str(folder)]
        command = [sys.executable, "-m", "pytest", *options, kind, *rest]
    try:
        done = subprocess.run(
            command, cwd=copy, env=env, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict("neither", f"not done after {LONGEST} s")
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    words = next((line for line in lines if line.startswith(("RED ", "FAILED "))), "")
    if any(sign in done.stdout for sign in NO_START):
        return Verdict("neither", words)
    if done.returncode == 1 and words:
        return Verdict("red", words)
    if done.returncode == 0:
        return Verdict("green", (lines or ["no words"])[-1])
    return Verdict("neither", f"exit code {done.returncode}: {(lines or [done.stderr[-300:]])[-1]}")
