"""What a server says that starts, or cannot: who can reach it, and about the file that it lacks."""

import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from clawdforge.lacks import explain_lack
from clawdforge.server import describe_reach
from clawdforge.settings import load_settings

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


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "let the server's user write there"),
        (errno.EROFS, "mount it for writing"),
        (errno.ENOTDIR, "something else is in its place"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EIO, "look after the disk"),
        (errno.ENAMETOOLONG, "a shorter path"),
        (errno.EBADF, "can read and write there"),
    ],
)
def test_what_is_advised_helps_against_what_is_wrong(number: int, words: str) -> None:
    said = explain_lack(OSError(number, os.strerror(number), str(DATA)), DATA)
    assert words in said
    assert ("space" in said) == (number in (errno.ENOSPC, errno.EDQUOT))


def test_a_folder_whose_sockets_would_have_too_long_a_path(tmp_path: Path) -> None:
    """What Python raises has no number."""
    with pytest.raises(OSError, match="too long") as raised, socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / ("x" * 200)))
    assert explain_lack(raised.value, DATA).endswith("choose a folder with a shorter path with --data-dir")


@pytest.mark.parametrize(
    ("host", "shown"),
    [("0.0.0.0", "0.0.0.0:8801"), ("::", "[::]:8801"), ("192.0.2.7", "192.0.2.7:8801")],  # noqa: S104
)
def test_a_server_that_others_can_reach_warns_and_says_what_is_bound(host: str, shown: str) -> None:
    said = describe_reach(load_settings({}, flags={"host": host}), "http://127.0.0.1:8801")
    assert f"it listens on {shown}:" in said
    guide = said.split()[-1]
    assert (Path(__file__).parents[2] / guide).is_file()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_server_on_loopback_has_nothing_to_warn_of(host: str) -> None:
    assert describe_reach(load_settings({}, flags={"host": host}), "http://127.0.0.1:8801") == ""
