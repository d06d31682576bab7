"""All peers by the name that `--peers` takes, and those that are named with a reason instead of figures."""

from collections.abc import Callable, Mapping
from typing import Final

from bench.contenders import Entrant
from bench.peers.agno import Agno
from bench.peers.langgraph import LangGraph

ENTRANTS: Final[Mapping[str, Callable[[], Entrant]]] = {"agno": Agno, "langgraph": LangGraph}
