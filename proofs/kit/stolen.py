"""How much of this machine's time others have had: those that share its processors from outside."""

import os
from pathlib import Path
from typing import Final, NamedTuple

STAT: Final = Path("/proc/stat")
STEAL: Final = 7
"""The place of what the hypervisor gave to others; what comes after it counts twice."""


class MachineTime(NamedTuple):
    """In ticks of all processors, since the machine started."""

    stolen: int
    whole: int

    def stolen_since(self, before: "MachineTime") -> float:
        """The part of the time between two looks that others had."""
        whole = self.whole - before.whole
        return (self.stolen - before.stolen) / whole if whole else 0.0


def read_machine_time(stat: Path = STAT) -> MachineTime:
    ticks = [int(word) for word in stat.read_text().split("\n", 1)[0].split()[1 : STEAL + 2]]
    return MachineTime(ticks[STEAL], sum(ticks))


def read_stolen_secs() -> float:
    """Of all processors together, since the machine started."""
    return read_machine_time().stolen / os.sysconf("SC_CLK_TCK")
