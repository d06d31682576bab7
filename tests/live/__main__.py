"""`./scripts/live [AGENT …] [--write]`: real agents through a real server, and tables of what they showed.

Installs what is missing into `.cache/live`; leaves out with a reason what cannot be had. All steps run twice,
contained and not. `--write` puts the rows of the agents that were tried into docs/reference/agents.md.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Final

from tests.live.bench import LiveBench, live
from tests.live.edges import EDGE_SETTINGS, EDGES, TIMED
from tests.live.installing import Unavailable, folder, install
from tests.live.programs import CLAUDE, PROGRAMS, Program
from tests.live.quiet import Quiet
from tests.live.tables import NOTHING, Row, Table, describe_run, join_levels
from tests.live.trial import STEPS, Trial, one_shot

Steps = Mapping[str, Callable[[Trial], str]]
TABLES: Final = (Table("live", tuple(STEPS)), Table("edges", tuple(EDGES)))
RUN: Final = "`claude -p` by `/run`"
LEVELS: Final = ("full", "off")
"""Of the sandbox, as `CLAWDFORGE_SANDBOX` names them; `auto` is one or the other."""
ORDER: Final = [name for program in PROGRAMS for name in (program.row, *([RUN] if program is CLAUDE else []))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/live", description=__doc__)
    parser.add_argument("agents", nargs="*", choices=[*(program.name for program in PROGRAMS), []])
    parser.add_argument("--write", action="store_true", help="put the rows into docs/reference/agents.md")
    parser.add_argument("--jobs", type=int, default=1, help="so many agents at once; none while one is timed")
    parser.add_argument("--only", choices=("steps", "edges"), help="one of the tables")
    wanted = parser.parse_args()
    programs = [one for one in PROGRAMS if not wanted.agents or one.name in wanted.agents]
    run, writing, quiet = describe_run(), Lock(), Quiet(wanted.jobs)

    def try_one(program: Program) -> tuple[list[Row], list[Row]]:
        """Written at once: who breaks a long run off keeps what it has shown so far."""
        both = try_program(program, quiet, wanted.only)
        with writing:
            for table, rows in zip(TABLES, both, strict=True):
                if rows and wanted.write:
                    table.write(rows, ORDER, run)
        return both

    with ThreadPoolExecutor(wanted.jobs) as pool:
        tried = list(pool.map(try_one, programs))
    failures: list[str] = []
    for table, kind in zip(TABLES, (0, 1), strict=True):
        rows = [row for both in tried for row in both[kind]]
        say("\n".join(["", *table.draw([row.line() for row in rows])]))
        failures += [f"{row.name}: {failure}" for row in rows for failure in row.failures]
    say("\n".join(["", *failures]) if failures else "\nAll that could be installed passed.")
    return 1 if failures else 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def try_program(program: Program, quiet: Quiet, only: str | None = None) -> tuple[list[Row], list[Row]]:
    """Its rows in the one table and in the other."""
    say(f"==> {program.name}")
    has_edges = not program.beside  # acpx ends what it has started after every turn, so it has none
    try:
        install(program)
    except Unavailable as reason:
        say(f"    {program.name} is left out: {reason}")
        absent = [Row(program.row, f"left out: {reason}", [NOTHING] * len(steps)) for steps in (STEPS, EDGES)]
        return absent[:1], absent[1:] if has_edges else []
    walked = [] if only == "edges" else _try_levels(program, STEPS, {}, quiet, has_one_shot=program is CLAUDE)
    edges = _try_levels(program, EDGES, EDGE_SETTINGS, quiet) if has_edges and only != "steps" else []
    return walked, edges


def _try_levels(
    program: Program, steps: Steps, settings: Mapping[str, str], quiet: Quiet, *, has_one_shot: bool = False
) -> list[Row]:
    """One row for both levels; below it that of the one-shot mode, if it has one, at the first of them."""
    rows: list[Row] = []
    beside: list[Row] = []
    for level in LEVELS:
        temporary = tempfile.TemporaryDirectory(prefix=f"live-{program.name}-", ignore_cleanup_errors=True)
        at_level = {**settings, "CLAWDFORGE_SANDBOX": level}
        with temporary as place, live(Path(place), program, at_level) as bench:
            rows.append(_stepped(bench, steps, level, quiet))
            if has_one_shot and not beside:
                beside.append(_one_shot(bench))
    return [join_levels(rows, LEVELS), *beside]


def _stepped(bench: LiveBench, steps: Steps, level: str, quiet: Quiet) -> Row:
    row, trial = Row(bench.program.row, ""), Trial(bench)
    for name, step in steps.items():
        if row.failures and not trial.known[1:]:
            row.cells.append(NOTHING)  # it never got going
            continue
        with quiet.alone() if name == TIMED else quiet.beside_others():
            began = time.monotonic()
            try:
                word = step(trial)
            except Exception as failure:  # noqa: BLE001 - any failure of a step is a cell of the table
                row.failures.append(f"{name}: {str(failure)[:500]}")
                word = "fails"
        row.cells.append(word)
        say(f"    {bench.program.name}, {level}, {name}: {word} ({time.monotonic() - began:.1f} s)")
    row.version = bench.version() or "unknown"
    return row


def _one_shot(bench: LiveBench) -> Row:
    word = one_shot(bench)
    say(f"    /run: {word}")
    package = folder(bench.program).parent / "@anthropic-ai" / "claude-code" / "package.json"
    return Row(RUN, str(json.loads(package.read_text())["version"]), [word, *[NOTHING] * (len(STEPS) - 1)])


if __name__ == "__main__":
    sys.exit(main())
