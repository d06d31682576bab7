"""What a server says that cannot start: about the file that it lacks, and what to do."""

import sys
from pathlib import Path

import pytest

from clawdforge.server import explain_lack

DATA = Path("/srv/data")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (sys.executable, "the Python of this server, cannot be run by its user: Permission denied"),
        (str(Path(sys.executable).resolve()), "let that user run it"),
        ("/usr/bin/bwrap", "/usr/bin/bwrap cannot be used: Permission denied; let the server's user use it"),
        ("/srv/data/homes", "the data folder cannot be used: /srv/data/homes: Permission denied"),
        ("/srv", "the data folder cannot be used: /srv: "),
        (b"/srv/data/forge.db", "the data folder cannot be used: /srv/data/forge.db"),
        (None, "the data folder cannot be used: /srv/data: "),
    ],
)
def test_the_file_that_is_meant_is_named(where: str | bytes | None, words: str) -> None:
    assert words in explain_lack(PermissionError(13, "Permission denied", where), DATA)
