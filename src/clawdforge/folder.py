"""The data folder, which only its owner may read."""

import os
from pathlib import Path

from clawdforge.disk import sync_folder
from clawdforge.wire.errors import StoreUnavailable


def prepare_folder(path: Path) -> Path:
    """Make the folder, or make an existing one private. A new one survives a loss of power."""
    try:
        if not path.is_dir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(path.parent)
        state = path.stat()
        if state.st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise StoreUnavailable(
            f"the data folder {path} cannot be used: {error.strerror}; choose another with --data-dir"
        ) from error
    return path.resolve()


def make_private_file(path: Path) -> None:
    """Make an empty file of mode 0600, or make an existing one private."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from error
