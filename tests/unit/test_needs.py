"""A test that needs something of the machine is skipped without it, and fails where it is required."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs

NOWHERE = {"unicorn": ("no-such-program-anywhere",), "broken": ("false",), "fine": ("true",)}


@pytest.fixture(autouse=True)
def probes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(needs, "PROBES", NOWHERE)
    monkeypatch.delenv(needs.REQUIRE, raising=False)
    monkeypatch.delenv("PYTEST_XDIST_TESTRUNUID", raising=False)
    needs.missing.cache_clear()
    yield
    needs.missing.cache_clear()


class Marked(pytest.Item):
    def runtest(self) -> None:
        raise AssertionError


@pytest.fixture
def item(request: pytest.FixtureRequest) -> pytest.Item:
    return Marked.from_parent(request.session, name="marked")


def test_what_works_is_not_skipped(item: pytest.Item) -> None:
    item.add_marker(needs.needs("fine"))
    needs.skip_without(item)


@pytest.mark.parametrize(("name", "reason"), [("unicorn", "not installed"), ("broken", "does not work here")])
def test_what_is_missing_is_skipped_with_its_reason(item: pytest.Item, name: str, reason: str) -> None:
    item.add_marker(needs.needs("fine"))
    item.add_marker(needs.needs(name))
    with pytest.raises(pytest.skip.Exception, match=reason):
        needs.skip_without(item)


def test_what_is_required_fails(item: pytest.Item, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(needs.REQUIRE, "fine unicorn")
    item.add_marker(needs.needs("fine"))
    needs.skip_without(item)
    item.add_marker(needs.needs("unicorn"))
    with pytest.raises(pytest.fail.Exception, match="unicorn is not installed"):
        needs.skip_without(item)


def test_nobody_can_need_what_nobody_can_look_for() -> None:
    with pytest.raises(AssertionError, match="dragon"):
        needs.needs("dragon")


def test_one_worker_of_a_run_asks_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    count = ("sh", "-c", f"echo once >> {asked}; echo too old >&2; exit 1")
    monkeypatch.setattr(needs, "PROBES", {"old": count})
    monkeypatch.setattr(needs, "ANSWERS", tmp_path / "needs")
    for run in ("one", "one", "other"):
        monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", run)
        needs.missing.cache_clear()  # as in another worker
        assert needs.missing("old") == "old does not work here: too old"
    assert asked.read_text() == "once\nonce\n"
    needs.forget_answers()
    assert list((tmp_path / "needs").iterdir()) == []


@needs.needs("bwrap")
@pytest.mark.parametrize(("above", "works"), [("/tmp", False), ("/var/tmp", True)])
def test_acpx_is_tried_where_its_driver_runs_it(above: str, works: bool) -> None:
    """A program below /tmp can be run, but not by the driver, which gives acpx a /tmp of its own."""
    with tempfile.TemporaryDirectory(dir=above) as folder:
        program = Path(folder) / "acpx"
        program.write_text("#!/bin/sh\necho 0.0.1\n")
        program.chmod(0o755)
        command = ["env", f"PATH={folder}:/usr/bin:/bin", "sh", "-c", needs.AS_AN_AGENT]
        for seen in ("/", folder):
            done = subprocess.run([*command, seen], capture_output=True, text=True, check=False, timeout=60)
            assert (done.returncode == 0) is works, done.stderr
