"""The one table of a run: lines by row, a column for each contender, ratios to ours, as text and as JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.contenders import OURS

WIDE: Final = 58


@dataclass
class Line:
    """One figure of each contender. `limits` are what no server could beat, by their names."""

    row: str
    name: str
    unit: str
    values: dict[str, float] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)

    @property
    def is_more_better(self) -> bool:
        return self.unit.startswith("/")


@dataclass
class Table:
    """All of a run. `left_out` says why a contender, or a row of one, is not there."""

    about: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def put(self, row: str, name: str, unit: str, who: str, value: float) -> None:
        self.line(row, name, unit).values[who] = round_off(value)

    def limit(self, row: str, name: str, unit: str, what: str, value: float) -> None:
        self.line(row, name, unit).limits[what] = round_off(value)

    def line(self, row: str, name: str, unit: str) -> Line:
        for line in self.lines:
            if (line.row, line.name) == (row, name):
                return line
        self.lines.append(Line(row, name, unit))
        return self.lines[-1]

    @property
    def contenders(self) -> list[str]:
        """Ours first, the others as they came."""
        found = list(dict.fromkeys(who for line in self.lines for who in line.values))
        return sorted(found, key=lambda who: who != OURS)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Table":
        found = json.loads(path.read_text("utf-8"))
        return cls(**{**found, "lines": [Line(**line) for line in found["lines"]]})


def round_off(value: float) -> float:
    """Three figures that mean something, and no more."""
    return float(f"{value:.3g}")


def show(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def ratio(value: float, ours: float) -> str:
    """How many times ours."""
    if not ours:
        return "-"
    return f"{show(float(f'{value / ours:.2g}'))} x"


def cells(line: Line, contenders: Iterable[str]) -> list[str]:
    """Ours as it is; a peer's with how many times ours it is."""
    found = []
    for who in contenders:
        value, ours = line.values.get(who), line.values.get(OURS)
        if value is None:
            found.append("")
        elif who == OURS or ours is None:
            found.append(show(value))
        else:
            found.append(f"{show(value)} ({ratio(value, ours)})")
    return found


def show_limits(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{what} {show(value)}" for what, value in limits.items())


def as_text(table: Table) -> str:
    who = table.contenders
    wide = max([*(len(cell) for line in table.lines for cell in cells(line, who)), *map(len, who), 10]) + 2
    lines = [f"{'':{WIDE}}" + "".join(f"{name:>{wide}}" for name in who) + "   limits"]
    last = ""
    for line in table.lines:
        if line.row != last:
            lines.append(f"[{line.row}]")
        last = line.row
        figures = "".join(f"{cell:>{wide}}" for cell in cells(line, who))
        lines.append(f"{f'{line.name}, {line.unit}':{WIDE}}{figures}   {show_limits(line.limits)}".rstrip())
    lines += [f"left out: {name}: {reason}" for name, reason in table.left_out.items()]
    return "\n".join(lines)
