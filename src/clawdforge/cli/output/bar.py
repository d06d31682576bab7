"""A progress bar with the bytes and the time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def show_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Moves back and forth until the total is known, and disappears at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[amount]}"))
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as shown:
        task = shown.add_task(what, total=None, amount="")

        def update(done: int, whole: int | None) -> None:
            amount = decimal(done) if whole is None else f"{decimal(done)} of {decimal(whole)}"
            shown.update(task, completed=done, total=whole, amount=amount)

        yield update
