"""Imports by name what most processes never need: the command that is called, the face that is open."""

import gc
from importlib import import_module
from typing import Any


def load(where: str) -> Any:
    """What `module:attribute` names.

    Meanwhile nobody looks for garbage: an import leaves next to none, and looking takes a tenth of its time.
    """
    module, attribute = where.split(":")
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return getattr(import_module(module), attribute)
    finally:
        if was_enabled:
            gc.enable()
