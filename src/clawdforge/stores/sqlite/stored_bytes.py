"""What apps and sessions have on the disk: counted with every write, and read without looking at what it is.

The triggers of the migration `stored_bytes` count rows as they come and go. Appended events are the
exception: they are many, so a batch of them is counted at once.
"""

from collections.abc import Mapping
from typing import Final

from clawdforge.stores.sqlite.rows import Value
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.disk import FILE_FORMS, SESSION_FORMS, DiskForm

FORMS: Final = tuple(DiskForm)


def bytes_of_app(db: Statements, app: str) -> dict[DiskForm, int]:
    row = db.row(db.queries.view["stored_bytes"], {"app": app})
    return dict(zip(FORMS, row or [0] * len(FORMS), strict=True))


def add_event_bytes(db: Statements, app: str, session_id: str, count: int) -> None:
    db.run(db.queries.tx["add_event_bytes"], {"app": app, "session": session_id, "bytes": count})


def set_file_bytes(db: Statements, app: str, session_id: str, sizes: Mapping[DiskForm, int]) -> None:
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


class CountedBytes:
    """For the doctor, of all apps: what is counted, what is there, and how to set one right by the other."""

    def __init__(self, db: Statements) -> None:
        self._db = db
        self._q = db.queries.inspection

    def bytes_counted(self, session_id: str) -> dict[DiskForm, int] | None:
        """What is noted of a session's bytes."""
        row = self._db.row(self._q["bytes_counted"], {"session": session_id})
        return None if row is None else dict(zip(SESSION_FORMS, row, strict=True))

    def bytes_real(self, session_id: str) -> dict[DiskForm, int]:
        """What its rows have."""
        events, messages = self._db.row(self._q["bytes_real"], {"session": session_id}) or (0, 0)
        return {DiskForm.EVENTS: events, DiskForm.MESSAGES: messages}

    def count_bytes(self, app: str, session_id: str, sizes: Mapping[DiskForm, int]) -> None:
        values: dict[str, Value] = {form.value: size for form, size in sizes.items()}
        self._db.run(self._q["count_bytes"], {"app": app, "session": session_id, **values})

    def wrong_apps(self) -> list[tuple[str, dict[DiskForm, int]]]:
        """Apps whose bytes are not the sum of what they have, and what they should be."""
        counted = {app: sizes for app, *sizes in self._db.rows(self._q["apps_counted"], {})}
        real = self._db.rows(self._q["apps_real"], {})
        nothing = [0] * len(DiskForm)
        return [
            (str(app), dict(zip(DiskForm, sizes, strict=True)))
            for app, *sizes in real
            if counted.get(app, nothing) != sizes
        ]

    def count_app(self, app: str, sizes: Mapping[DiskForm, int]) -> None:
        values: dict[str, Value] = {form.value: size for form, size in sizes.items()}
        self._db.run(self._q["count_app"], {"app": app, **values})

    def forget_bytes(self) -> int:
        """Remove what is counted for sessions that are not there; how many they were."""
        return self._db.run(self._q["forget_bytes"], {})
