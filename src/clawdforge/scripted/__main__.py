"""Starts the scripted agent: as a module, or as a plain file without the rest of clawdforge."""

import os
import sys

if not __package__:
    # Run as a file: modules keep their names, but no parent package's own code is executed.
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
    for name in ("clawdforge.scripted", "clawdforge"):
        package = type(sys)(name)
        package.__path__ = [folder]
        sys.modules[name] = package
        folder = os.path.dirname(folder)  # noqa: PTH120 - likewise

from clawdforge.scripted.program import main

sys.exit(main(sys.argv[1:]))
