"""What servers of tests are told about the machine is what each would find, and only where it would."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from clawdforge.drivers.processes import containment, user_wall
from clawdforge.drivers.processes.containment import Containment, Level, find_containment
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.drivers.processes.user_wall import try_users
from proofs.kit.known import Known


@pytest.fixture(scope="module")
def known() -> Known:
    return Known.find()


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    mock.patch.stopall()


def find(level: Level, data_dir: Path, users: str = "auto") -> tuple[Containment, bool]:
    found = try_users(find_containment(level), users, data_dir)
    return found, Helpers(found.bwrap, found.walls)._mounts_fds


def test_it_is_what_a_start_finds_and_nothing_is_tried_again(known: Known, tmp_path: Path) -> None:
    found = find("auto", tmp_path)
    known.tell()
    refuse = mock.Mock(side_effect=AssertionError("something was tried"))
    if found[0].why_no_users is None:  # what does not work is tried again, for the words that say why
        mock.patch.object(subprocess, "Popen", refuse).start()
    assert find("auto", tmp_path) == found


@pytest.mark.parametrize("level", ["full", "off"])
def test_another_level_is_tried(known: Known, tmp_path: Path, level: Level) -> None:
    found = find(level, tmp_path)
    known.tell()
    assert find(level, tmp_path) == found


def test_with_another_home_nothing_is_tried_again(
    known: Known, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = find("auto", tmp_path)
    known.tell()
    if found[0].why_no_users is None:
        refuse = mock.Mock(side_effect=AssertionError("something was tried"))
        mock.patch.object(subprocess, "Popen", refuse).start()
    assert find("auto", tmp_path) == found


def test_with_a_home_of_which_agents_see_less_everything_is_tried(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/another")
    less = replace(known.level, base=known.level.base[1:])
    before = vars(containment)["probe"]
    replace(known, level=less).tell()
    assert vars(containment)["probe"] is before


def test_with_other_programs_everything_is_tried(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(vars(containment)), dict(vars(user_wall))
    monkeypatch.setenv("PATH", "/nonexistent")
    known.tell()
    assert (vars(containment), vars(user_wall)) == before
    assert find_containment("auto").bwrap is None
