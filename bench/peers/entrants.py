"""All peers by the name that `--peers` takes; those without a driver are tried and named."""

from collections.abc import Callable, Mapping
from typing import Final

from bench.contenders import Entrant
from bench.peers.aegra import Aegra
from bench.peers.agno import Agno
from bench.peers.langgraph import LangGraph
from bench.peers.opencode import OpenCode
from tests.live.installing import Unavailable, install
from tests.live.programs import Program

ENTRANTS: Final[Mapping[str, Callable[[], Entrant]]] = {
    "agno": Agno,
    "langgraph": LangGraph,
    "aegra": Aegra,
    "opencode": OpenCode,
}
UNPACKED: Final = ("hermes-webui",)
"""No package of theirs was found that installs; their source would have to be given."""
NAMES: Final = (*ENTRANTS, "acpx", *UNPACKED)


def find_why_not(name: str) -> str:
    """What the registry answers when it is asked for a package of that name."""
    try:
        install(Program(name, name, pip=(name,), cache="bench"))
    except Unavailable as reason:
        return f"it cannot be installed here: {reason}"
    return "a package of this name can be had, but nobody has written a driver for it"
