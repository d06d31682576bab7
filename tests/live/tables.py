"""Tables of docs/reference/agents.md that `./scripts/live --write` fills: rows, and when they were made."""

import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "reference" / "agents.md"
NOTHING: Final = "-"
TRIED: Final = "Tried on "


@dataclass
class Row:
    """What one agent showed; `cells` has a word for each step, in order."""

    name: str
    version: str
    cells: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def line(self) -> str:
        return f"| {' | '.join((self.name, self.version, *self.cells))} |"


def join_levels(rows: Sequence[Row], levels: Sequence[str]) -> Row:
    """One row of what was tried at several levels; a cell tells them apart where they differ."""
    cells = []
    for words in zip(*(row.cells for row in rows), strict=True):
        told = [f"{word} ({level})" for word, level in zip(words, levels, strict=True)]
        cells.append(words[0] if len(set(words)) == 1 else ", ".join(told))
    failures = [f"{level}: {why}" for row, level in zip(rows, levels, strict=True) for why in row.failures]
    return Row(rows[0].name, rows[0].version, cells, failures)


@dataclass(frozen=True)
class Table:
    """One table of the page, between two comments of its name."""

    name: str
    steps: Sequence[str]

    def draw(self, lines: Iterable[str]) -> list[str]:
        head = ("agent", "version", *self.steps)
        return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]

    def write(self, rows: Sequence[Row], order: Sequence[str], run: str, page: Path = PAGE) -> None:
        """Rows of agents that were not tried this time stay, with the line that says when they were."""
        begin, end = f"<!-- {self.name}: begin -->\n", f"<!-- {self.name}: end -->\n"
        before, rest = page.read_text().split(begin)
        inside, after = rest.split(end)
        lines = {line.split(" | ")[0].strip("| "): line for line in inside.splitlines() if line[:2] == "| "}
        lines |= {row.name: row.line() for row in rows}
        drawn = self.draw([lines[name] for name in order if name in lines])
        runs = _list_runs(inside.splitlines(), [row.name for row in rows], run)
        page.write_text("\n".join([before + begin[:-1], *drawn, "", *runs, end[:-1]]) + "\n" + after)


def _list_runs(lines: Iterable[str], names: Sequence[str], run: str) -> list[str]:
    """One line for each run whose rows are still there."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith(TRIED):
            when, _, who = line.removeprefix(TRIED).rstrip(".").partition(": ")
            found[when] = [name for name in who.split(", ") if name not in names]
    found[run] = [*found.get(run, []), *names]
    return [f"{TRIED}{when}: {', '.join(who)}." for when, who in found.items() if who]


def describe_run() -> str:
    """When, at which commit, and on what machine."""
    asked = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=PAGE.parent).stdout.strip()
    system: Mapping[str, str] = platform.freedesktop_os_release()
    name = f"{system.get('NAME', 'Linux').split()[0]} {system.get('VERSION_ID', '')}".strip()
    return f"{datetime.now(UTC):%Y-%m-%d} at {commit}, {name}, {platform.machine()}"
