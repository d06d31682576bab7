"""Screens of a terminal as one SVG that plays them: text, and no script, font or picture from elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from xml.sax.saxutils import escape

WIDE, HIGH, EDGE = 8.4, 18, 12
"""What a character takes, and the room around the screen."""

PAPER, INK = "#16181d", "#d8dee9"
COLOURS: Final[Mapping[str, str]] = {
    "black": "#5c6370",
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#d8dee9",
    "default": INK,
}
"""What a terminal calls its colours; `brown` is its yellow."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Frame:
    """A screen, where its cursor was, and for how long it is shown."""

    rows: tuple[Row, ...]
    cursor: tuple[int, int]
    secs: float


def draw(frames: Sequence[Frame], title: str) -> str:
    """The frames below each other behind a window of one frame's size; a style moves them.

    Whoever wants no motion, or shows no styles, sees the last one. A row of many frames is written once.
    """
    columns, rows = len(frames[0].rows[0]), len(frames[0].rows)
    width, height = round(columns * WIDE + 2 * EDGE), rows * HIGH + 2 * EDGE
    names: dict[str, str] = {}
    film = []
    for number, frame in enumerate(frames):
        film.append(f'<g transform="translate(0 {number * height})">{_cursor(frame)}')
        for at, row in enumerate(frame.rows):
            if text := draw_row(row):
                name = names.setdefault(text, f"r{len(names)}")
                film.append(f'<use href="#{name}" y="{at * HIGH}"/>')
        film.append("</g>")
    total = sum(frame.secs for frame in frames)
    steps, passed = [], 0.0
    for number, frame in enumerate(frames):
        steps.append(f"{passed / total:.3%}{{transform:translateY({-number * height}px)}}")
        passed += frame.secs
    last = -(len(frames) - 1) * height
    kept = "".join(f'<g id="{name}">{text}</g>' for text, name in names.items())
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>text{{font:14px ui-monospace,'DejaVu Sans Mono',monospace;fill:{INK};white-space:pre}}\n"
        f".film{{transform:translateY({last}px);animation:play {total:.1f}s step-end infinite}}\n"
        f"@keyframes play{{{''.join(steps)}}}\n"
        "@media (prefers-reduced-motion:reduce){.film{animation:none}}</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>\n'
        f"<defs>{kept}</defs>\n"
        f'<g class="film">{"".join(film)}</g>\n</svg>\n'
    )


def draw_row(row: Row) -> str:
    """The words of a row, each run of one look at its column, as wide as in a terminal in any font."""
    runs = []
    for look, cells in groupby(enumerate(row), key=lambda cell: (cell[1].fg, cell[1].bold, cell[1].italics)):
        found = list(cells)
        text = "".join(cell.data for _, cell in found)
        begin = found[0][0] + len(text) - len(text.lstrip())
        if not (words := text.strip()):
            continue
        x, long = EDGE + begin * WIDE, len(words) * WIDE
        runs.append(
            f'<text x="{x:.1f}" y="{EDGE + 14}" textLength="{long:.1f}"{_style(*look)}>{escape(words)}</text>'
        )
    return "".join(runs)


def _style(colour: str, bold: bool, italics: bool) -> str:
    fill = COLOURS.get(colour.removeprefix("bright"), f"#{colour}")
    parts = [f"fill:{fill}"] if fill != INK else []
    parts += ["font-weight:bold"] if bold else []
    parts += ["font-style:italic"] if italics else []
    return f' style="{";".join(parts)}"' if parts else ""


def _cursor(frame: Frame) -> str:
    x, y = EDGE + frame.cursor[0] * WIDE, EDGE + frame.cursor[1] * HIGH
    return f'<rect x="{x:.1f}" y="{y}" width="{WIDE}" height="{HIGH}" fill="{INK}" opacity=".35"/>'
