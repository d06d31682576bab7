"""A picture of some lines of a table: a bar for each contender, as SVG without script or font."""

from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

from bench.contenders import OURS
from bench.table import Line, show

WIDE, HIGH, GAP, HEAD, EDGE = 720, 18, 14, 22, 16
NAMES, FIGURES = 110, 130
"""The room left of the bars and right of them."""
PAPER, INK, FAINT = "#16181d", "#d8dee9", "#8b93a1"
COLOURS: Final[Mapping[bool, str]] = {True: "#98c379", False: "#61afef"}


def draw_bars(lines: Sequence[Line], title: str) -> str:
    """Each line has a scale of its own, from nothing to its longest bar."""
    parts: list[str] = []
    y = EDGE
    for line in lines:
        most = max(line.values.values()) or 1.0
        better = "more" if line.is_more_better else "less"
        parts.append(text(EDGE, y + 14, f"{line.name}, {line.unit}", INK))
        parts.append(text(WIDE - EDGE, y + 14, f"{better} is better", FAINT, "end"))
        y += HEAD
        for who, value in line.values.items():
            long = max(1, round((WIDE - 2 * EDGE - NAMES - FIGURES) * value / most))
            parts.append(text(EDGE, y + 13, who, INK))
            parts.append(
                f'<rect x="{EDGE + NAMES}" y="{y}" width="{long}" height="{HIGH - 4}" rx="2" '
                f'fill="{COLOURS[who == OURS]}"/>'
            )
            parts.append(text(EDGE + NAMES + long + 8, y + 13, show(value), INK))
            y += HIGH
        y += GAP
    high = y - GAP + EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDE}" height="{high}" '
        f'viewBox="0 0 {WIDE} {high}">\n<title>{escape(title)}</title>\n'
        "<style>text{font:13px system-ui,'DejaVu Sans',sans-serif}</style>\n"
        f'<rect width="{WIDE}" height="{high}" rx="8" fill="{PAPER}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: int, y: int, words: str, colour: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'
