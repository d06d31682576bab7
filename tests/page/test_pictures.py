"""The pictures in the docs show the page as it is: whoever changes how it looks draws them anew."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from bench.screenshots import FOLDER, draw_all, find_changed, why_not_compared
from tests.needs import needs

pytestmark = needs("chromium")
REPO = FOLDER.parents[1]


def test_the_pictures_show_the_page_as_it_is(browser: Browser, tmp_path: Path) -> None:
    if why := why_not_compared(browser):
        pytest.skip(why)
    drawn = draw_all(browser, tmp_path)
    for name in find_changed(browser, drawn):
        (tmp_path / name).write_bytes(drawn[name])
        pytest.fail(
            f"{tmp_path / name} is not as in docs/pictures; if it should, ./scripts/screenshots --accept"
        )


def test_every_picture_is_shown_somewhere() -> None:
    pages = [REPO / "README.md", *(REPO / "docs").rglob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    assert [path.name for path in FOLDER.glob("*.png") if f"pictures/{path.name}" not in text] == []
