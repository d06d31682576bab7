"""What a recorded run gives the pages: a section of docs/explain/speed.md and its pictures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.bars import draw_bars
from bench.contenders import OURS
from bench.table import Table, cells, show_limits
from proofs.kit.server import ROOT

RECORDED: Final = ROOT / "bench" / "results" / "recorded.json"
PAGE: Final = ROOT / "docs" / "explain" / "speed.md"
PICTURES: Final = ROOT / "docs" / "pictures"
NOT_YET: Final = "Not recorded yet.\n"
BEGIN, END = "<!-- from bench/results/recorded.json -->", "<!-- until here -->"
DRAWN: Final[Mapping[str, tuple[str, str]]] = {
    "speed-turns.svg": ("many", "Turns of one second at once, by server"),
    "speed-cost.svg": ("turn", "What a turn takes, by server"),
    "speed-stream.svg": ("chunks", "Chunks of an answer, by server"),
}
"""A picture of the lines of a row that more than one contender has."""


def write_all(table: Table, page: Path = PAGE, pictures: Path = PICTURES) -> None:
    drawn = draw_all(table)
    for name in DRAWN:
        (pictures / name).unlink(missing_ok=True)
    for name, picture in drawn.items():
        (pictures / name).write_text(picture, encoding="utf-8")
    before, _, after = parts(page)
    page.write_text(f"{before}{BEGIN}\n{section(table)}{END}{after}", encoding="utf-8")


def parts(page: Path = PAGE) -> tuple[str, str, str]:
    """What stands before the section, in it, and after it."""
    before, _, rest = page.read_text("utf-8").partition(f"{BEGIN}\n")
    inside, _, after = rest.partition(END)
    return before, inside, after


def draw_all(table: Table) -> dict[str, str]:
    found = {}
    for name, (row, title) in DRAWN.items():
        lines = [line for line in table.lines if line.row == row and len(line.values) > 1]
        if lines:
            found[name] = draw_bars(lines, title)
    return found


def section(table: Table) -> str:
    """As the page has it, between its two marks."""
    about, who = table.about, table.contenders
    loads = " at its beginning and ".join(f"{load:g}" for load in about["load"])
    versions = "; ".join(
        f"{name}: " + ", ".join(f"{what} {version}" for what, version in table.versions[name].items())
        for name in who
        if name in table.versions
    )
    lines = [
        f"Recorded on {about['date']} by `{about['command']}` in {about['seconds']} s,",
        f"commit {about['commit']}, {about['machine']}, with a load of {loads} at its end.",
        f"Versions: {versions}.",
        "",
        f"| | | {' | '.join(who)} | limit |",
        "|---" * (len(who) + 3) + "|",
    ]
    for line in table.lines:
        figures = " | ".join(cells(line, who))
        lines.append(f"| {line.name} | {line.unit} | {figures} | {show_limits(line.limits)} |")
    if table.left_out:
        lines += ["", "| left out | what was found by trying |", "|---|---|"]
        lines += [f"| {name} | {reason.replace('|', '/')} |" for name, reason in table.left_out.items()]
    for name, (_, title) in DRAWN.items():
        if name in draw_all(table):
            lines += ["", f"![{title}](../pictures/{name})"]
    assert OURS in who, "a run without our own figures is no record"
    return "\n".join([*lines, ""])
