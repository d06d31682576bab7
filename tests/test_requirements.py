"""What tests cite and what is required are one list: no id is made up, and none is forgotten quietly."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
ID = re.compile(r"\b(?:S[0-4]|X)-\d+\b")
MOST_NOT_CITED = 0
"""May only be lowered."""


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    return tomllib.loads((TESTS / "requirements.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cited() -> dict[str, set[str]]:
    """Each id with the files that cite it."""
    found: dict[str, set[str]] = {}
    for path in TESTS.rglob("*.py"):
        for name in ID.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(str(path.relative_to(TESTS)))
    return found


def test_what_is_cited_is_required(manifest: dict[str, Any], cited: dict[str, set[str]]) -> None:
    unknown = {name: files for name, files in cited.items() if name not in manifest["requirements"]}
    assert unknown == {}


def test_what_is_required_is_cited(manifest: dict[str, Any], cited: dict[str, set[str]]) -> None:
    """A test that covers one names it in its docstring; then the id leaves `not_cited`."""
    listed = manifest["not_cited"]
    assert sorted(set(manifest["requirements"]) - set(cited)) == sorted(listed)
    assert len(listed) <= MOST_NOT_CITED


def test_every_requirement_is_a_short_sentence(manifest: dict[str, Any]) -> None:
    for name, text in manifest["requirements"].items():
        assert ID.fullmatch(name), name
        assert 10 < len(text) < 130, name
        assert not text.endswith("."), name
