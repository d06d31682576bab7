"""Starts the host: `python -P -m clawdforge.graphs module:attribute`, or `/path/to/file.py:attribute`."""

import asyncio
import os
import sys

from clawdforge.graphs.connection import Connection
from clawdforge.graphs.host import Host
from clawdforge.graphs.loading import NoGraph, load_graph
from clawdforge.graphs.places import take_place

USAGE = "usage: python -P -m clawdforge.graphs MODULE:ATTRIBUTE | /PATH/TO/FILE.py:ATTRIBUTE"


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    # What the graph prints must not mix with the lines of the protocol.
    protocol = os.dup(1)
    os.set_inheritable(protocol, False)
    os.dup2(2, 1)
    place = take_place(os.environ)  # before a line of the graph is run
    try:
        asyncio.run(_serve(protocol, Host(load_graph(sys.argv[1]), place)))
    except NoGraph as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _serve(protocol: int, host: Host) -> None:
    connection = await Connection.open(0, protocol)
    await host.serve(connection)
    # A tool that still runs in a thread would keep the process alive, but nobody needs its result.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
