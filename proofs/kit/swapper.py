"""A program that swaps what lies at a path, in a tight loop, until it is ended. Standard library only.

`python -I -S swapper.py ORDER`, with ORDER as JSON: `seed`, and `spots`, each a path, what is to take its
place (`link`, `pipe`, `socket`, `file` or `folder`) and where a link leads. At SIGTERM all is put back.
"""

# ruff: noqa: PTH102, PTH103, PTH104, PTH112, PTH114, PTH119, PTH120, PTH123, PTH211 - it has to start fast

import contextlib
import ctypes
import itertools
import json
import os
import random
import signal
import socket
import stat
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2
LONGEST_PAUSE = 0.0005
LOOK = 16


class Ended(Exception):
    """It was told to stop."""


def make(path: str, kind: str, aim: str) -> None:
    if kind == "link":
        os.symlink(aim, path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as end:
            folder = os.open(os.path.dirname(path), os.O_PATH)
            end.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
            os.close(folder)
    elif kind == "folder":
        os.mkdir(path)
    else:
        with open(path, "w") as file:
            file.write("another file")


def exchange(one: str, other: str) -> bool:
    done: int = LIBC.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)
    return done == 0


def end(_number: int, _frame: object) -> None:
    raise Ended


def is_decoy(path: str, kind: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    checks = {"link": stat.S_ISLNK, "pipe": stat.S_ISFIFO, "socket": stat.S_ISSOCK}
    return kind in checks and checks[kind](mode)


def main() -> None:
    order = json.loads(sys.argv[1])
    chance = random.Random(order["seed"])
    spots = [(path, f"{path}.other", kind, aim) for path, kind, aim in order["spots"]]
    for path, other, kind, aim in spots:
        if not os.path.lexists(path):
            os.makedirs(path)
        make(other, kind, aim)
    signal.signal(signal.SIGTERM, end)
    swaps = dict.fromkeys((path for path, *_ in spots), 0)
    print("ready", flush=True)
    try:
        for turn in itertools.count():
            for path, other, _, _ in spots:
                swaps[path] += exchange(path, other)
            if turn % LOOK == 0:
                replant(spots)
            if chance.random() < 0.3:
                time.sleep(chance.random() * LONGEST_PAUSE)
    except Ended:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for path, other, kind, _ in spots:
            if is_decoy(path, kind) or (kind in ("file", "folder") and swaps[path] % 2):
                exchange(path, other)
            with contextlib.suppress(OSError):
                is_folder = os.path.isdir(other) and not os.path.islink(other)
                (os.rmdir if is_folder else os.unlink)(other)
    print(sum(swaps.values()), flush=True)


def replant(spots: list[tuple[str, str, str, str]]) -> None:
    """The server removes what is in its way; then it is put there again."""
    for path, other, kind, aim in spots:
        if kind in ("file", "folder") or is_decoy(path, kind) or is_decoy(other, kind):
            continue
        with contextlib.suppress(OSError):
            if os.path.lexists(other):
                os.rename(other, f"{path}.lost{time.monotonic_ns()}")
            make(other, kind, aim)


if __name__ == "__main__":
    main()
