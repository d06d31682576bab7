"""What a server says that starts, or cannot: who can reach it, and about the file that it lacks."""

import sys
from pathlib import Path

import pytest

from clawdforge.server import describe_reach, explain_lack
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
