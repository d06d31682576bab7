"""Puts uploaded files into a session's home, where its agent can read them while it runs."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from clawdforge.core.models.rows import FileRow
from clawdforge.core.rules.file_names import safe_file_name
from clawdforge.drivers.folders.file_copy import copy_bytes
from clawdforge.drivers.folders.tree_walk import CREATE, give_to_owner, open_file, open_folder_below
from clawdforge.wire.errors import UnknownFile

FOLDER = "uploads"  # not part of the copies: it stays as it is when a home is restored


def make_folder(home: Path) -> Path:
    """The folder of attachments, made if missing.

    It is never a link, since agents may also read it through us.
    """
    with open_folder_below(home, (FOLDER,)):
        return home / FOLDER


def attach_file(home: Path, row: FileRow) -> Path:
    """Copy the file into the home under its own name, replacing what is there.

    The agent owns the home, so no link is followed.
    """
    name, token = safe_file_name(row.name), safe_file_name(row.file_token)
    temporary = f".{secrets.token_hex(8)}"
    with _open_upload(row.path, name) as source, open_folder_below(home, (FOLDER, token)) as inside:
        target = os.open(temporary, CREATE, 0o600, dir_fd=inside)
        try:
            copy_bytes(source, target, os.fstat(source).st_size)
            give_to_owner(target, inside)
            _move_into_place(inside, temporary, name)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=inside)
            raise
        finally:
            os.close(target)
    return home / FOLDER / token / name


@contextlib.contextmanager
def _open_upload(path: str, name: str) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        try:
            source = stack.enter_context(open_file(path))
        except OSError as error:
            raise UnknownFile(f"{name} is no longer stored; upload it again") from error
        yield source


def _move_into_place(inside: int, temporary: str, name: str) -> None:
    try:
        os.replace(temporary, name, src_dir_fd=inside, dst_dir_fd=inside)
    except IsADirectoryError:
        os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=inside, dst_dir_fd=inside)
        os.replace(temporary, name, src_dir_fd=inside, dst_dir_fd=inside)
