"""Decision records: every one has the same form, fits on a page, and stands in the index."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
HEADINGS = ["Context", "Decision", "Why", "What it costs", "What would change our mind"]
PAGE_LINES = 60


def title(path: Path) -> str:
    return path.read_text().splitlines()[0].removeprefix(f"# {path.name[:4]}. ")


def test_they_are_numbered_without_a_gap() -> None:
    assert len(RECORDS) >= 12
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_the_form(path: Path) -> None:
    assert re.fullmatch(r"\d{4}(-[a-z0-9]+)+\.md", path.name)
    text = path.read_text()
    assert text.startswith(f"# {path.name[:4]}. ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    sections = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]
    assert all(section.strip() for section in sections), "a heading with nothing below it"
    assert len(text.splitlines()) <= PAGE_LINES


def test_the_index_names_every_record_with_its_title() -> None:
    index = (FOLDER / "README.md").read_text()
    rows = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \|$", index, re.MULTILINE)
    assert rows == [(path.name[:4], path.name, title(path)) for path in RECORDS]
