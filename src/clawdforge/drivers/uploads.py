"""Puts uploaded files into a session's home, where its agent can read them while it runs."""

import contextlib
import os
import secrets
import unicodedata
from pathlib import Path

from clawdforge.core.errors import UnknownFile
from clawdforge.core.model import FileRow
from clawdforge.drivers.file_copy import copy_bytes, folder_below

FOLDER = "uploads"  # no part of the copies: it stays where it is when a home is put back
MAX_NAME_BYTES = 200


def place(home: Path, row: FileRow) -> Path:
    """The file under a name as near to its own as is safe. The home is the agent's: no link is followed."""
    name, token = safe_name(row.name), safe_name(row.file_token)
    if not Path(row.path).is_file():
        raise UnknownFile(f"{name} is not stored any more; upload it again")
    with Path(row.path).open("rb") as source, folder_below(home, (FOLDER, token)) as folder:
        with contextlib.suppress(
            FileNotFoundError
        ):  # what has that name may be a folder, or a link elsewhere
            os.rename(name, f".{secrets.token_hex(4)}", src_dir_fd=folder, dst_dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            copy_bytes(source.fileno(), target, os.fstat(source.fileno()).st_size)
        finally:
            os.close(target)
    return home / FOLDER / token / name


def safe_name(name: str) -> str:
    """One file name: no folders, no control or direction characters, not hidden, not too long."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    plain = "".join(char for char in last if unicodedata.category(char)[0] != "C").strip().lstrip(".")
    return plain.encode()[:MAX_NAME_BYTES].decode(errors="ignore") or "file"
