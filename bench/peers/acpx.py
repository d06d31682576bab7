"""acpx: a command line and no server, so it has one figure."""

import statistics
from typing import Final

from bench import turn
from bench.contenders import fresh_folder
from bench.contests import SHORT, Sizes
from bench.peers.kit import read_pins
from bench.table import Table
from tests.live.installing import Unavailable

NAME: Final = "acpx"


def measure_acpx(table: Table, sizes: Sizes) -> None:
    """A prompt in a session that it has, by a process for each."""
    with fresh_folder() as folder:
        times = turn.acpx_turns(folder, 3 if sizes is SHORT else 10)
    if isinstance(times, str):
        raise Unavailable(times)
    for name in ("a turn, with a pause before the next, p50", "a turn directly after the one before, p50"):
        table.put("turn", name, "ms", NAME, statistics.median(times) * 1e3)
    table.versions[NAME] = dict(one.rsplit("@", 1) for one in read_pins(NAME)["npm"])
