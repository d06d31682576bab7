"""What the page on speed says beside others is what the last recorded run found."""

import tomllib

import pytest

from bench.peers.entrants import NAMES, UNPACKED
from bench.peers.kit import HERE
from bench.table import Table
from bench.written import DRAWN, NOT_YET, PICTURES, RECORDED, draw_all, parts, section


def test_the_page_has_the_recorded_run() -> None:
    _, inside, after = parts()
    assert after, "the page has lost the marks of its section"
    assert inside == (section(Table.load(RECORDED)) if RECORDED.exists() else NOT_YET)


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_shows_the_recorded_run(name: str) -> None:
    drawn = draw_all(Table.load(RECORDED)) if RECORDED.exists() else {}
    path = PICTURES / name
    assert (path.read_text("utf-8") if path.exists() else None) == drawn.get(name)


def test_every_peer_has_its_versions_pinned() -> None:
    pins = tomllib.loads((HERE / "versions.toml").read_text())
    assert set(pins) == set(NAMES) - set(UNPACKED)
    for one in pins.values():
        assert all("==" in package for package in one.get("pip", ()))
        assert all("@" in package[1:] for package in one.get("npm", ()))
