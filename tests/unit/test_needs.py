"""A test that needs something of the machine is skipped without it, and fails where it is required."""

import subprocess
import tempfile
from pathlib import Path

import pytest

from tests import needs

NOWHERE = {"unicorn": ("no-such-program-anywhere",), "broken": ("false",), "fine": ("true",)}


@pytest.fixture(autouse=True)
def probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "PROBES", NOWHERE)
    monkeypatch.delenv(needs.REQUIRE, raising=False)
    needs.missing.cache_clear()


def test_what_works_is_not_skipped() -> None:
    assert needs.needs("fine").args == (False,)


@pytest.mark.parametrize(("name", "reason"), [("unicorn", "not installed"), ("broken", "does not work here")])
def test_what_is_missing_is_skipped_with_its_reason(name: str, reason: str) -> None:
    mark = needs.needs(name)
    assert mark.args == (True,)
    assert reason in mark.kwargs["reason"]


def test_what_is_required_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(needs.REQUIRE, "fine unicorn")
    needs.needs("fine")
    with pytest.raises(pytest.fail.Exception, match="unicorn is not installed"):
        needs.needs("unicorn")


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
