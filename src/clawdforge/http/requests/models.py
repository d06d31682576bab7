"""Builds models of the wire ahead of their first use.

They put that off, for the sake of a quick start. What FastAPI makes of one that is not built, it builds only
with the first body, and warns of its own words then.
"""

from collections.abc import Callable
from typing import Any, get_type_hints

from pydantic import BaseModel

from clawdforge.wire.base import Reply, Request, StrictRequest


def build_taken(endpoint: Callable[..., Any]) -> None:
    """Those that a handler takes."""
    for taken in get_type_hints(endpoint).values():
        if isinstance(taken, type) and issubclass(taken, BaseModel):
            _build(taken)


def build_all() -> None:
    """All that a description names."""
    for base in (Request, StrictRequest, Reply):
        _build_below(base)


def _build_below(base: type[BaseModel]) -> None:
    for model in base.__subclasses__():
        _build(model)
        _build_below(model)


def _build(model: type[BaseModel]) -> None:
    model.model_config["defer_build"] = False
    model.model_rebuild()
