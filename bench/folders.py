"""What a turn's boundary costs: a copy of the home, a snapshot of the workspace, and what deletes them.

    .venv/bin/python -m bench.folders [--rounds 15]

Each home has so many files of 500 bytes, of which one changes between two copies. The row of bubblewrap is
what any work in a sandbox of its own would cost at least.
"""

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from clawdforge.drivers.folders.git_shadow import Shadow
from clawdforge.drivers.folders.home_copies import Copies
from clawdforge.drivers.folders.tree_removal import delete_tree
from clawdforge.drivers.processes.helpers import Helpers, hold_folder

SIZES = (10, 100, 1000, 10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    helpers = Helpers(shutil.which("bwrap"))
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        base = Path(folder).resolve()
        row(
            "an empty program in bubblewrap",
            [time_call(lambda: run_nothing(base, helpers)) for _ in range(rounds)],
        )
        for size in SIZES:
            tree = base / f"tree{size}"
            fill(tree, size)
            row(f"copy of a home, {size} files, one changed", copy_home(base / f"copies{size}", tree, rounds))
            git = shutil.which("git")
            if git is not None:
                shadow = Shadow(base / f"shadow{size}", tree, git, helpers)
                row(f"snapshot of a workspace, {size} files, one changed", snapshot(shadow, tree, rounds))
            row(f"deletion of {size} files", [time_call(lambda gone=tree: delete_tree(gone))])  # type: ignore[misc]


def fill(tree: Path, size: int) -> None:
    for number in range(size):
        folder = tree / f"a{number % 20}" / f"b{number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).write_text("x" * 500)


def copy_home(folder: Path, home: Path, rounds: int) -> list[float]:
    copies = Copies(folder, max_copies=20, max_bytes=1 << 30, excluded=())
    times = []
    for turn in range(1, rounds + 3):
        (home / "changed").write_text(str(turn))
        began = time.perf_counter()
        copies.take(home, turn, "agent", threading.Event())
        times.append(time.perf_counter() - began)
        copies.make_durable()
    return times[2:]  # the first copies everything, and what has just changed is copied once more


def snapshot(shadow: Shadow, workspace: Path, rounds: int) -> list[float]:
    times = []
    for turn in range(1, rounds + 2):
        (workspace / "changed").write_text(str(turn))
        times.append(time_call(lambda turn=turn: shadow.record_turn(turn)))  # type: ignore[misc]
    return times[1:]


def run_nothing(base: Path, helpers: Helpers) -> None:
    with hold_folder(base, "/folder") as folder:
        helpers.run(["/bin/true"], [folder], cwd=folder, env={}, timeout=10)


def time_call(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def row(name: str, times: list[float]) -> None:
    p50, most = statistics.median(times), max(times)
    print(f"{name:52} {p50 * 1e3:9.2f} ms p50 {most * 1e3:9.2f} ms most   n={len(times)}")


if __name__ == "__main__":
    main()
