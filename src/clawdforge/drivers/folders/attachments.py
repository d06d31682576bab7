"""Puts uploaded files into a session's home, where its agent can read them while it runs."""

import contextlib
import os
import secrets
from pathlib import Path

from clawdforge.core.model import FileRow
from clawdforge.core.rules.file_names import file_name
from clawdforge.drivers.folders.file_copy import copy_bytes, folder_below
from clawdforge.wire.errors import UnknownFile

FOLDER = "uploads"  # no part of the copies: it stays where it is when a home is put back


def folder(home: Path) -> Path:
    """Where they lie: made if need be, and never a link, since the agent may read there through us too."""
    with folder_below(home, (FOLDER,)):
        return home / FOLDER


def place(home: Path, row: FileRow) -> Path:
    """The file under its own name. The home is the agent's: no link is followed, what is there goes."""
    name, token = file_name(row.name), file_name(row.file_token)
    if not Path(row.path).is_file():
        raise UnknownFile(f"{name} is not stored any more; upload it again")
    half = f".{secrets.token_hex(8)}"
    with Path(row.path).open("rb") as source, folder_below(home, (FOLDER, token)) as inside:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(half, flags, 0o600, dir_fd=inside)
        try:
            copy_bytes(source.fileno(), target, os.fstat(source.fileno()).st_size)
            _put(inside, half, name)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(half, dir_fd=inside)
            raise
        finally:
            os.close(target)
    return home / FOLDER / token / name


def _put(inside: int, half: str, name: str) -> None:
    try:
        os.replace(half, name, src_dir_fd=inside, dst_dir_fd=inside)
    except IsADirectoryError:
        os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=inside, dst_dir_fd=inside)
        os.replace(half, name, src_dir_fd=inside, dst_dir_fd=inside)
