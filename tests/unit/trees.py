"""Trees as hostile agents make them: deep, and swapped for links while somebody looks at them."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SWAPPER = """
import ctypes, os, sys
folder, link = (os.fsencode(word) for word in sys.argv[1:])
print("ready", flush=True)
while True:  # exchanged in one step: there is always something of that name
    ctypes.CDLL(None).renameat2(-100, folder, -100, link, 2)
"""
CANARY = "CANARY"
FILES = 50


@contextlib.contextmanager
def swapped_folder(top: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder with canaries, which a program puts in the place of `top/inside` and back, without a pause."""
    outside, inside, link = tmp_path / "outside", top / "inside", tmp_path / "link"
    for folder, words in ((outside, CANARY), (inside, "its own")):
        folder.mkdir()
        for number in range(FILES):
            (folder / str(number)).write_text(words)
    link.symlink_to(outside)
    line = [sys.executable, "-c", SWAPPER, str(inside), str(link)]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            yield outside
        finally:
            swapper.kill()


def make_deep(top: Path, depth: int = 1500) -> None:
    fd = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - its own descriptor counts the same each time
