"""The planted bugs still fit the source, and what is to catch them is there. `prove teeth` runs them."""

from pathlib import Path

import pytest

from proofs.__main__ import PROOFS
from proofs.faults import LANDED
from proofs.kit.source import NORMAL, Change, DoesNotFit, check_fits, plant
from proofs.planted import Bug
from proofs.teeth import BUGS

TOP = Path(__file__).parent.parent.parent
WANTED = (
    "acknowledge before the commit",
    "synchronous = NORMAL",
    "no unique index on the running turn",
    "subscribe after the read",
    "an id on heartbeats",
    "only the process group is killed",
    "sweep by the time of creation",
    "an error of the save is swallowed",
    "copies of homes are hard links",
    "the Host is checked after routing",
    "the environment is a deny-list",
    "no fence",
)


def name_of(bug: Bug) -> str:
    return bug.name


def test_every_bug_that_proofs_must_catch_is_planted() -> None:
    names = [bug.name for bug in BUGS]
    assert sorted(set(names)) == sorted(names)
    assert set(WANTED) <= set(names)


@pytest.mark.parametrize("bug", BUGS, ids=name_of)
def test_a_planted_bug_fits_the_source(bug: Bug) -> None:
    assert bug.changes
    for change in bug.changes:
        check_fits(TOP, change)


@pytest.mark.parametrize("change", [LANDED, NORMAL])
def test_a_change_of_a_proof_fits_the_source(change: Change) -> None:
    check_fits(TOP, change)


@pytest.mark.parametrize("bug", BUGS, ids=name_of)
def test_what_catches_a_bug_exists(bug: Bug) -> None:
    kind, *rest = bug.caught.split()
    if kind == "prove":
        assert rest[0] in PROOFS
        return
    suites = (TOP / kind, *(TOP / "tests" / "conformance").rglob("*.py"))
    words = rest[rest.index("-k") + 1]
    assert any(words in path.read_text() for path in suites)


def test_a_copy_has_the_bug_and_the_source_does_not(tmp_path: Path) -> None:
    copy = plant(TOP, tmp_path / "copy", NORMAL)
    assert NORMAL.new in (copy / NORMAL.path).read_text()
    assert NORMAL.old in (TOP / NORMAL.path).read_text()


def test_a_change_that_is_no_python_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one = 1\n")
    with pytest.raises(DoesNotFit, match="no Python"):
        check_fits(tmp_path, Change("a.py", "one = 1", "one = ("))
