"""What apps and sessions have on the disk: counted with every write, and read without looking at what it is.

The triggers of the migration `stored_bytes` count rows as they come and go. Appended events are the
exception: they are many, so a batch of them is counted at once.
"""

from collections.abc import Mapping

from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.rows import Value
from clawdforge.wire.disk import FILE_FORMS, DiskForm


def bytes_of_app(db: Db, app: str) -> dict[DiskForm, int]:
    row = db.row(db.queries.view["stored_bytes"], {"app": app})
    return dict(zip(DiskForm, row or [0] * len(DiskForm), strict=True))


def add_event_bytes(db: Db, app: str, session_id: str, count: int) -> None:
    db.run(db.queries.tx["add_event_bytes"], {"app": app, "session": session_id, "bytes": count})


def set_file_bytes(db: Db, app: str, session_id: str, sizes: Mapping[DiskForm, int]) -> None:
    """Only what was measured is written, and only if it differs."""
    names = [form.value for form in FILE_FORMS if form in sizes]
    if not names:
        return
    values: dict[str, Value] = {form.value: size for form, size in sizes.items()}
    changes = ", ".join(f"{name} = :{name}" for name in names)
    differs = " OR ".join(f"{name} <> :{name}" for name in names)
    where = f"session_id = :session AND app_name = :app AND ({differs})"
    sql = f"UPDATE session_bytes SET {changes} WHERE {where}"  # noqa: S608 - our own names
    db.run(sql, {"app": app, "session": session_id, **values})
