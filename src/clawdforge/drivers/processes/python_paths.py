"""Where a Python environment takes its parts from: its base, and folders that were installed in place."""

# ruff: noqa: PTH110, PTH112 - pathlib raises for what may not be looked at

import os
import re
from collections.abc import Iterator
from os.path import exists, isdir
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 1 << 16
QUOTED: Final = re.compile(r"""["'](/[^"'\n]+)["']""")
FINDER: Final = re.compile(r"\b(__editable__\w+_finder)\b")


def find_base(root: Path) -> Path | None:
    """The interpreter that a virtual environment was made with; None for other folders."""
    for line in _read(root / "pyvenv.cfg").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home" and value.strip().startswith("/"):
            folder = Path(value.strip())
            return next((folder / name for name in _list(folder, "python", "") if "-" not in name), None)
    return None


def list_extra_paths(root: Path) -> Iterator[Path]:
    """Folders outside the environment that its `.pth` files name, as `pip install -e` leaves them."""
    for python in _list(root / "lib", "python3", ""):
        packages = root / "lib" / python / "site-packages"
        for name in _list(packages, "", ".pth"):
            text = _read(packages / name)
            for line in text.splitlines():
                if line.startswith("/") and isdir(line.strip()):
                    yield Path(line.strip())
            for finder in FINDER.findall(text):
                found = QUOTED.findall(_read(packages / f"{finder}.py"))
                yield from (Path(path) for path in found if exists(path))


def _list(folder: Path, start: str, end: str) -> list[str]:
    """Names in a folder. This is done at each start, and a glob is slower."""
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(start) and name.endswith(end))  # noqa: PTH208
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return ""
