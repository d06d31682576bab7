"""After a resize: where the live part of the screen begins by now, so that nothing is there twice."""

from collections.abc import Mapping, Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.renderer import Renderer


def is_reflowing(env: Mapping[str, str]) -> bool:
    """Whether the terminal breaks rows anew when it gets narrower. Nearly all do; these are known not to."""
    return not (env.get("XTERM_VERSION") or env.get("STY") or env.get("TERM", "").startswith(("linux", "vt")))


def count_rows(cells: Sequence[int], columns: int) -> int:
    """How many rows of so many columns these rows take."""
    return sum(max(1, -(-used // max(columns, 1))) for used in cells)


def keep_place(app: "Application[str]", env: Mapping[str, str]) -> None:
    """Have the library look where its rows are before it erases them.

    It moves up as many rows as it has drawn. Where a narrower terminal has made more of them, the first ones
    would stay above, and the answer would be there twice. It may draw before it is told of the resize.
    """
    if is_reflowing(env):
        place = _Place(app)
        erase_and_draw = app._on_resize  # noqa: SLF001 - there is no other place to be asked; a test looks

        def resize() -> None:
            place.look()
            erase_and_draw()

        app._on_resize = resize  # type: ignore[method-assign]  # noqa: SLF001
        app.before_render += place.look


class _Place:
    def __init__(self, app: "Application[str]") -> None:
        self._app = app
        self._columns = app.output.get_size().columns

    def look(self, _sender: object = None) -> None:
        columns = self._app.output.get_size().columns
        if columns < self._columns:
            _move_start(self._app.renderer, columns)
        self._columns = columns


def _move_start(renderer: Renderer, columns: int) -> None:
    screen, at = renderer.last_rendered_screen, renderer._cursor_pos  # noqa: SLF001
    if screen is None:
        return
    cells = [
        max((x + 1 for x, char in screen.data_buffer[y].items() if char.char.strip()), default=0)
        for y in range(at.y)
    ]
    renderer._cursor_pos = Point(at.x, count_rows(cells, columns) + at.x // max(columns, 1))  # noqa: SLF001
