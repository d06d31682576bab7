"""`./scripts/live [AGENT …] [--write]`: real agents through a real server, and the table of what they showed.

Installs what is missing into `.cache/live`, one agent at a time; leaves out with a reason what cannot be had.
`--write` puts the rows of the agents that were tried into docs/reference/agents.md.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.live.bench import LiveBench, live
from tests.live.installing import Unavailable, folder, install
from tests.live.programs import CLAUDE, PROGRAMS, Program
from tests.live.trial import STEPS, Trial, one_shot

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "reference" / "agents.md"
BEGIN: Final = "<!-- live: begin -->\n"
END: Final = "<!-- live: end -->\n"
HEAD: Final = ("agent", "version", *STEPS)
NOTHING: Final = "-"
RUN: Final = "`claude -p` by `/run`"


@dataclass
class Row:
    """What one agent showed; `cells` has a word for each step, in order."""

    name: str
    version: str
    cells: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def line(self) -> str:
        return f"| {' | '.join((self.name, self.version, *self.cells))} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/live", description=__doc__)
    parser.add_argument("agents", nargs="*", choices=[*(program.name for program in PROGRAMS), []])
    parser.add_argument("--write", action="store_true", help="put the rows into docs/reference/agents.md")
    wanted = parser.parse_args()
    rows: list[Row] = []
    for program in PROGRAMS:
        if not wanted.agents or program.name in wanted.agents:
            rows += tried(program)
    say("\n".join(["", *table([row.line() for row in rows])]))
    if wanted.write:
        write(rows)
    failures = [f"{row.name}: {failure}" for row in rows for failure in row.failures]
    say("\n".join(["", *failures]) if failures else "\nAll that could be installed passed.")
    return 1 if failures else 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tried(program: Program) -> list[Row]:
    say(f"==> {program.name}")
    try:
        install(program)
    except Unavailable as reason:
        say(f"    left out: {reason}")
        return [Row(program.row, f"left out: {reason}", [NOTHING] * len(STEPS))]
    temporary = tempfile.TemporaryDirectory(prefix=f"live-{program.name}-", ignore_cleanup_errors=True)
    with temporary as place, live(Path(place), program) as bench:
        return [_stepped(bench), *([_one_shot(bench)] if program is CLAUDE else [])]


def _stepped(bench: LiveBench) -> Row:
    row, trial = Row(bench.program.row, ""), Trial(bench)
    for name, step in STEPS.items():
        began = time.monotonic()
        if row.failures and not trial.known[1:]:
            row.cells.append(NOTHING)  # it never got going
            continue
        try:
            word = step(trial)
        except Exception as failure:  # noqa: BLE001 - any failure of a step is a cell of the table
            row.failures.append(f"{name}: {str(failure)[:500]}")
            word = "fails"
        row.cells.append(word)
        say(f"    {name}: {word} ({time.monotonic() - began:.1f} s)")
    row.version = bench.version() or "unknown"
    return row


def _one_shot(bench: LiveBench) -> Row:
    word = one_shot(bench)
    say(f"    /run: {word}")
    package = folder(bench.program).parent / "@anthropic-ai" / "claude-code" / "package.json"
    return Row(RUN, str(json.loads(package.read_text())["version"]), [word, *[NOTHING] * (len(STEPS) - 1)])


def table(lines: list[str]) -> list[str]:
    return [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}", *lines]


def write(rows: list[Row]) -> None:
    """Rows of agents that were not tried this time stay."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    inside, after = rest.split(END)
    lines = {line.split(" | ")[0].strip("| "): line for line in inside.splitlines()[2:]}
    lines |= {row.name: row.line() for row in rows}
    order = [name for program in PROGRAMS for name in (program.row, *([RUN] if program is CLAUDE else []))]
    kept = [lines[name] for name in order if name in lines]
    PAGE.write_text(before + BEGIN + "\n".join(table(kept)) + "\n" + END + after)


if __name__ == "__main__":
    sys.exit(main())
