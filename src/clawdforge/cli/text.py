"""Words, paths and text of a command are UTF-8 also where the locale knows nothing but ASCII."""

import codecs
import os
import sys


def ensure_utf8() -> None:
    """Begin again in Python's own UTF-8 mode where it was told to read everything as ASCII.

    Python chooses that mode by itself, unless PYTHONUTF8=0 says otherwise. Without it no word, file or
    answer with other letters can be read or written.
    """
    if codecs.lookup(sys.getfilesystemencoding()).name == "ascii":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - no shell
