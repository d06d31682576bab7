"""Finds the graph that a name means, and gives it a checkpointer."""

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel


class NoGraph(Exception):
    """The name leads to no graph; the message says what was found instead."""


def load(name: str) -> Any:
    """What stands at `module:attribute` or `/path/to/file.py:attribute`: a graph, or what makes one."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise NoGraph(f"{name!r} does not name a graph; write module:attribute or /path/to/file.py:attribute")
    try:
        found: Any = _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except (ImportError, OSError, SyntaxError) as error:
        raise NoGraph(f"{place} cannot be imported: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NoGraph(f"{place} has no {attribute}")
        found = getattr(found, part)
    return found


async def prepare(source: Any, saver: BaseCheckpointSaver[Any]) -> Pregel[Any, Any, Any, Any]:
    """The graph with our checkpoints: compiled here, a copy of a compiled one, or what a function makes."""
    if isinstance(source, StateGraph):
        return source.compile(checkpointer=saver)
    if isinstance(source, Pregel):
        return source.copy({"checkpointer": saver})
    if not callable(source):
        raise NoGraph(f"{source!r} is not a graph, and not a function that makes one")
    takes = "checkpointer" in inspect.signature(source).parameters
    made = source(checkpointer=saver) if takes else source()
    made = await made if inspect.isawaitable(made) else made
    if not isinstance(made, StateGraph | Pregel):
        raise NoGraph(f"{source!r} made {type(made).__name__}, not a graph")
    return await prepare(made, saver)


def _file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
