"""Python's own parser, with nothing else that might parse at the same time."""

import ast
import gc


def parse_alone(source: str) -> ast.Module:
    """Without the collector of garbage: a finalizer may parse too, as Python 3.11 does to show a traceback.

    The two would share one count of their depth: "AST constructor recursion depth mismatch".
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_on:
            gc.enable()
