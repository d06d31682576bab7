"""How the launcher is run: by the bare interpreter, from its compiled form where that is sound.

Python compiles a program that it is given as a source each time anew: 4 ms of every start of an agent. What
the import of the same file left beside it is run instead, if it was made from this very source.
"""

import importlib.util
import sys
from pathlib import Path
from typing import Final

from clawdforge.drivers.processes import launcher

EXECUTABLE: Final = Path(sys.executable).resolve()
"""The interpreter itself, not the link of a virtual environment: the launcher needs no packages."""

SOURCE: Final = Path(launcher.__file__).resolve()
HEADER_BYTES: Final = 16
BY_TIME_AND_SIZE: Final = bytes(4)


def find_compiled(source: Path) -> Path:
    """The compiled form of a source, or the source itself if that is missing, older, or made elsewhere.

    Only what lies beside the source, which agents cannot write. Where Python is told to keep compiled files
    elsewhere (PYTHONPYCACHEPREFIX), an agent may be able to, and time and size are easily forged.
    """
    compiled = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    try:
        made = source.stat()
        with compiled.open("rb") as file:
            header = file.read(HEADER_BYTES)
    except OSError:
        return source
    numbers = (int(made.st_mtime) & 0xFFFFFFFF, made.st_size & 0xFFFFFFFF)
    expected = b"".join(number.to_bytes(4, "little") for number in numbers)
    return compiled if header == importlib.util.MAGIC_NUMBER + BY_TIME_AND_SIZE + expected else source


def find_command() -> tuple[str, ...]:
    """Asked at each start: an upgrade beside a running server may take the compiled form away."""
    return (str(EXECUTABLE), "-I", "-S", str(find_compiled(SOURCE)))
