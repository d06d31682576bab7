"""Imports a graph by its name and gives it a checkpointer."""

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
    """The name does not lead to a graph; the message says what was found instead."""


def load_graph(name: str) -> Any:
    """The graph, or the function that makes one, at `module:attribute` or `/path/to/file.py:attribute`."""
    module, _, attribute = name.rpartition(":")
    if not module or not attribute:
        raise NoGraph(f"{name!r} does not name a graph; write module:attribute or /path/to/file.py:attribute")
    try:
        found: Any = _import_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    except (ImportError, OSError, SyntaxError) as error:
        raise NoGraph(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NoGraph(f"{module} has no {attribute}")
        found = getattr(found, part)
    return found


def load_part(name: str) -> Any:
    """A module of ours that needs packages which only some graphs have."""
    return importlib.import_module(name)


async def compile_graph(source: Any, saver: BaseCheckpointSaver[Any]) -> Pregel[Any, Any, Any, Any]:
    """The graph with our checkpointer.

    `source` is a graph, a compiled graph, or a function that makes one.
    """
    if isinstance(source, StateGraph):
        return source.compile(checkpointer=saver)
    if isinstance(source, Pregel):
        return source.copy({"checkpointer": saver})
    if not callable(source):
        raise NoGraph(f"{source!r} is neither a graph nor a function that makes one")
    takes_checkpointer = "checkpointer" in inspect.signature(source).parameters
    made = source(checkpointer=saver) if takes_checkpointer else source()
    made = await made if inspect.isawaitable(made) else made
    if not isinstance(made, StateGraph | Pregel):
        raise NoGraph(f"{source!r} returned {type(made).__name__}, not a graph")
    return await compile_graph(made, saver)


def _import_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
