"""A data folder that was moved or copied: paths in the database are fitted to where the folder is now."""

from pathlib import Path
from typing import Final

import apsw

PLACES: Final = (
    ("sessions", "cwd", "own_cwd = 1", "workspaces", 1),
    ("files", "path", "TRUE", "files", 2),
)
"""Table, column, which rows, the folder inside the data folder in which all of these places are, and how many
names lead from there to one: a path above may have any names, and so may an app whose files these are."""


def fit_to_folder(connection: apsw.Connection, data_dir: Path) -> int:
    """Returns how many places were changed: none, in one quick look, where the folder is where it was."""
    changed = 0
    with connection:
        for table, column, which, folder, depth in PLACES:
            here = f"{data_dir}/{folder}/"
            rows = connection.execute(  # the names are ours
                f"SELECT DISTINCT {column} FROM {table}"  # noqa: S608
                f" WHERE {which} AND ({column} < :here OR {column} >= :after)",
                {"here": here, "after": here[:-1] + chr(ord("/") + 1)},
            ).fetchall()
            names = [(str(old), str(old).split("/")[-depth - 1 :]) for (old,) in rows]
            moves = [(here + "/".join(inside), old) for old, (above, *inside) in names if above == folder]
            connection.executemany(
                f"UPDATE {table} SET {column} = ? WHERE {which} AND {column} = ?",  # noqa: S608
                moves,
            )
            changed += len(moves)
    return changed
