"""Why a server cannot start, in words: the file that is meant, and what helps against just that."""

import errno
import os
import sys
from pathlib import Path
from typing import Final

ANOTHER: Final = "choose another folder with --data-dir"
SHORTER: Final = "choose a folder with a shorter path with --data-dir"
HINTS: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), f"free some space, or {ANOTHER}"),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM),
        f"let the server's user write there, or {ANOTHER}",
    ),
    errno.EROFS: f"mount it for writing, or {ANOTHER}",
    **dict.fromkeys(
        (errno.ENOTDIR, errno.EEXIST, errno.EISDIR), f"something else is in its place; move it, or {ANOTHER}"
    ),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "let the server open more files (ulimit -n)"),
    **dict.fromkeys((errno.EIO, errno.ESTALE), f"look after the disk, or {ANOTHER}"),
    errno.ENAMETOOLONG: SHORTER,
    errno.ELOOP: f"a link leads back to itself; remove it, or {ANOTHER}",
}
"""What to do, by the number of the system's error."""


def explain_lack(error: OSError, data_dir: Path) -> str:
    """What the operator can do about a file or folder without which there is no server."""
    where, why = Path(os.fsdecode(error.filename or data_dir)), error.strerror or error
    if where in (Path(sys.executable), Path(sys.executable).resolve()):
        return f"{where}, the Python of this server, cannot be run by its user: {why}; let that user run it"
    if where.is_absolute() and not where.is_relative_to(data_dir) and not data_dir.is_relative_to(where):
        return f"{where} cannot be used: {why}; let the server's user use it, then start the server again"
    return f"the data folder cannot be used: {where}: {why}; {_find_hint(error)}"


def _find_hint(error: OSError) -> str:
    # Python itself refuses the path of a socket that is longer than the kernel takes, without a number.
    if error.errno is None and "path too long" in str(error):
        return SHORTER
    return HINTS.get(error.errno or 0, f"see that the server's user can read and write there, or {ANOTHER}")
