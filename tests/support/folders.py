"""What lies below a folder that a running server changes meanwhile: what vanishes is not there."""

import os
from fnmatch import fnmatchcase
from pathlib import Path


def everything_below(folder: Path, pattern: str = "*") -> list[Path]:
    """As `folder.rglob(pattern)`, which raises when a folder goes between being listed and being opened."""
    return [
        Path(place, name)
        for place, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if fnmatchcase(name, pattern)
    ]


def files_below(folder: Path, pattern: str = "*") -> list[Path]:
    return [path for path in everything_below(folder, pattern) if path.is_file()]
