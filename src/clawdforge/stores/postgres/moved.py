"""A data folder that was moved or copied: paths in the database are fitted to where the folder is now."""

from pathlib import Path

from clawdforge.stores.postgres.link import Link
from clawdforge.stores.postgres.texts import from_postgres, to_postgres
from clawdforge.stores.postgres.writer import BEGIN
from clawdforge.stores.sqlite.moved import PLACES


def fit_to_folder(link: Link, data_dir: Path) -> int:
    """Returns how many places were changed; as in SQLite."""
    changed = 0
    link.run(BEGIN)
    for table, column, which, folder, depth in PLACES:
        here = f"{data_dir}/{folder}/"
        rows = link.fetch(  # the names are ours
            f"SELECT DISTINCT {column} FROM {table} WHERE {which} AND NOT starts_with({column}, $1)",  # noqa: S608
            (to_postgres(here),),
        )
        names = [(old, str(from_postgres(old)).split("/")[-depth - 1 :]) for (old,) in rows]
        moves = [(here + "/".join(inside), old) for old, (above, *inside) in names if above == folder]
        for new, old in moves:
            change = f"UPDATE {table} SET {column} = $1 WHERE {which} AND {column} = $2"  # noqa: S608
            link.run(change, (to_postgres(new), old))
        changed += len(moves)
    link.run("COMMIT")
    return changed
