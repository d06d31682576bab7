"""A test that needs something of the machine is skipped without it, and fails where it is required."""

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
