"""A secret that the server makes for itself once and keeps in a file."""

import os
from pathlib import Path


def keep_secret(path: Path, fresh: str) -> str:
    """The secret in the file at `path`.

    If there is none, `fresh` is stored there, readable by its owner only.
    """
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}.new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(fresh + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return path.read_text().strip()
