"""All figures of one run in one table: our server, its peers, and what no server could beat.

    python -m bench [--short] [--long] [--only ROW …] [--peers NAMES|none] [--before DIR] [--json FILE]
                    [--record]

Peers are installed into .cache/bench at the versions of `bench/peers/versions.toml`; one that cannot be had
or does not run here is named with the reason. Contenders alternate in blocks, and each figure is a median. A
figure of a peer has beside it how many times ours it is. `--record` keeps the result in bench/results, draws
its pictures and rewrites its section of docs/explain/speed.md. `--long` adds the rows that take minutes each.
With `--before` a checkout of an older version is one more contender.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import httpx2
import psutil

from bench.alone import ALONE, LONG, Alone
from bench.contenders import OURS, Before, Contender, Entrant, NotReady, Ours, fresh_folder
from bench.contests import CONTESTS, SERIES, SHORT, Sizes
from bench.peers.acpx import NAME, measure_acpx
from bench.peers.entrants import ENTRANTS, NAMES, UNPACKED, find_why_not
from bench.plain import Refused
from bench.table import Table, as_text
from bench.written import RECORDED, write_all
from proofs.kit.report import commit, machine
from proofs.kit.server import ROOT
from tests.live.installing import Unavailable

ROWS: Final = (*SERIES, *CONTESTS, *ALONE, *LONG)
FAILURES: Final = (
    *(Unavailable, NotReady, Refused, OSError, EOFError, TimeoutError, AssertionError),
    *(subprocess.SubprocessError, httpx2.HTTPError, psutil.Error),
)
One = TypeVar("One", Contender, Entrant)
NONE: Final = "none"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="little of everything: shows that it works")
    parser.add_argument("--long", action="store_true", help="also the rows that take minutes")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=[], metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--peers", default=",".join(NAMES), help="names with commas between, or none")
    parser.add_argument("--before", type=Path, metavar="DIR", help="a checkout of an older version")
    parser.add_argument("--json", type=Path, help="keep the result in this file as well")
    parser.add_argument("--record", action="store_true", help="keep it, and write its pictures and its page")
    args = parser.parse_args()
    names = [] if args.peers == NONE else args.peers.split(",")
    if unknown := set(names) - set(NAMES):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    chosen = args.only or [row for row in ROWS if args.long or row not in LONG]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all peers are ended
    table = Table()
    describe(table, args.short)
    began = time.monotonic()
    older = [] if args.before is None else [Before(root=args.before.resolve())]
    entrants = [Ours(), *find_peers(table, older, names)]
    sizes = SHORT if args.short else Sizes()
    with fresh_folder() as folder:
        asyncio.run(measure(table, entrants, chosen, sizes, folder))
    if NAME in names and "turn" in chosen:
        say(NAME)
        try:
            measure_acpx(table, sizes)
        except FAILURES as reason:
            table.left_out[NAME] = words(reason)
    table.about["load"].append(round(os.getloadavg()[0], 1))
    table.about["seconds"] = round(time.monotonic() - began)
    about = table.about
    print(f"\n{about['date']}, commit {about['commit']}, {about['machine']}, load {about['load']}")
    print(as_text(table))
    if args.json:
        table.save(args.json)
    if args.record:
        table.save(RECORDED)
        write_all(table)
    return 1 if any(name.startswith(OURS) for name in table.left_out) else 0


def describe(table: Table, short: bool) -> None:
    """What the figures have to be read with."""
    changes = ["git", "status", "--porcelain", "--untracked-files=no"]
    changed = subprocess.run(changes, cwd=ROOT, capture_output=True, check=False).stdout
    table.about |= {
        "command": "python -m bench " + " ".join(sys.argv[1:]),
        "form": "short" if short else "full",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(ROOT) + (" and changes" if changed else ""),
        "machine": machine(),
        "load": [round(os.getloadavg()[0], 1)],
    }


def find_peers(table: Table, older: Sequence[Entrant], names: Sequence[str]) -> list[Entrant]:
    """Those that are installed and start; why not stands in the table."""
    found = []
    table.left_out |= {name: find_why_not(name) for name in names if name in UNPACKED}
    for entrant in [*older, *(ENTRANTS[name]() for name in names if name in ENTRANTS)]:
        name = entrant.name
        say(f"{name}: installing, if it is not there, and starting")
        try:
            entrant.install()
            with fresh_folder() as folder, entrant.run(folder / name):
                table.versions[name] = dict(entrant.versions())
        except FAILURES as reason:
            table.left_out[name] = words(reason)
        else:
            found.append(entrant)
    table.versions |= {one.name: dict(one.versions()) for one in [Ours()]}
    return found


async def measure(
    table: Table, entrants: Sequence[Entrant], rows: Sequence[str], sizes: Sizes, folder: Path
) -> None:
    for row in (row for row in rows if row in SERIES):
        say(row)
        await together_or_alone(table, row, entrants, partial(SERIES[row], table, sizes, folder))
    if contests := [row for row in rows if row in CONTESTS]:
        with ExitStack() as stack:
            running = [stack.enter_context(one.run(folder / f"run-{one.name}")) for one in entrants]
            for row in contests:
                say(row)
                await together_or_alone(table, row, running, partial(CONTESTS[row], table, sizes))
    alone: dict[str, Alone] = {**ALONE, **LONG}
    for row in (row for row in rows if row in alone):
        say(row)
        try:
            await asyncio.to_thread(alone[row], table, sizes, folder)
        except FAILURES as reason:
            table.left_out[f"{OURS}: {row}"] = words(reason)


async def together_or_alone(
    table: Table, row: str, contenders: Sequence[One], contest: Callable[[Sequence[One]], Awaitable[None]]
) -> None:
    """Where one of them fails, each does the row by itself, and who fails is named."""
    try:
        await contest(contenders)
    except FAILURES:
        for one in contenders:
            try:
                await contest([one])
            except FAILURES as reason:
                table.left_out[f"{one.name}: {row}"] = words(reason)


def words(reason: Exception) -> str:
    """In one line."""
    return " ".join(f"{type(reason).__name__}: {reason}".split())[:300]


def say(what: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S}  {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
