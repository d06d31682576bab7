"""Starts the scripted agent: as a module, or as a plain file without the rest of clawdforge."""

import sys

if not __package__:
    # Run as a file: modules keep their names, but no parent package's own code is executed.
    folder = __file__.rpartition("/")[0]  # `os` takes 2 ms to import
    for name in ("clawdforge.scripted", "clawdforge"):
        package = type(sys)(name)
        package.__path__ = [folder]
        sys.modules[name] = package
        folder = folder.rpartition("/")[0]

from clawdforge.scripted.program import main

sys.exit(main(sys.argv[1:]))
