"""What an import costs: the SDK's, and the server's. `python -m bench.imports [--tries N]`.

Each is measured in an interpreter of its own. Processor time is what the import itself takes; the clock also
counts whatever else the machine does. Of several tries the best is printed.
"""

import argparse
import subprocess
import sys
from typing import Final, NamedTuple

IMPORTS: Final = {
    "nothing but the package": "import clawdforge",
    "the blocking client": "from clawdforge import Forge",
    "the awaiting client": "from clawdforge import AsyncForge",
    "the client and all it needs for a call": (
        "from clawdforge import Forge\nfrom clawdforge.client import _lazy, models\n_lazy.httpx2"
    ),
    "the command line": "import clawdforge.cli",
    "a server, until it looks at its machine": "import clawdforge.cli.commands.serve",
    "the server": "import clawdforge.server",
}
MEASURE: Final = """
import sys, time
clock, processor, before = time.perf_counter(), time.process_time(), len(sys.modules)
{}
print(time.perf_counter() - clock, time.process_time() - processor, len(sys.modules) - before)
"""


class Cost(NamedTuple):
    processor_secs: float
    clock_secs: float
    modules: int


def measure(statement: str, tries: int) -> Cost:
    """The cheapest of some tries."""
    return min(_measure_once(statement) for _ in range(tries))


def _measure_once(statement: str) -> Cost:
    command = [sys.executable, "-c", MEASURE.format(statement)]
    clock, processor, modules = subprocess.check_output(command, text=True).split()
    return Cost(float(processor), float(clock), int(modules))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=5)
    tries = parser.parse_args().tries
    for name, statement in IMPORTS.items():
        cost = measure(statement, tries)
        print(
            f"{name:<42} {cost.processor_secs * 1000:6.0f} ms of processor"
            f" {cost.clock_secs * 1000:6.0f} ms by the clock {cost.modules:5} modules"
        )


if __name__ == "__main__":
    main()
