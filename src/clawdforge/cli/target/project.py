"""Which project a command is run in: the folder with `.git`, else the working directory."""

from pathlib import Path

from clawdforge.wire.local import project_key


def project_folder(start: Path | None = None) -> Path:
    """The nearest folder above `start` that is a git work tree; without one, `start` itself."""
    here = (start or Path.cwd()).expanduser().resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def key_of(folder: Path) -> str:
    """The key by which the server knows the sessions of a folder."""
    return project_key(str(folder.resolve()))
