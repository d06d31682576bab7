"""The docs as a site: every page has its place in it, and it is read from files without asking anybody."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # no stubs, and one call
from playwright.sync_api import expect, sync_playwright

from tests.needs import needs
from tests.page.kit import launched

TOP = Path(__file__).parent.parent.parent
SITE = yaml.safe_load((TOP / "mkdocs.yml").read_text())
FETCHED = re.compile(r"<(?!a\b)[a-z]+\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
"""What a browser would load by itself from another host; a link is followed by a person."""


def pages(nav: list[Any]) -> list[str]:
    found = []
    for entry in nav:
        if isinstance(entry, str):
            found.append(entry)
        else:
            [below] = entry.values()
            found += pages(below)
    return found


def test_every_page_has_one_place_in_the_site() -> None:
    here = sorted(str(path.relative_to(TOP / "docs")) for path in (TOP / "docs").rglob("*.md"))
    assert sorted(pages(SITE["nav"])) == here, "add it to `nav` in mkdocs.yml"


def test_the_site_begins_with_the_start_and_ends_with_decisions() -> None:
    sections = [name for entry in SITE["nav"] if isinstance(entry, dict) for name in entry]
    assert sections == ["Start", "Guides", "Recipes", "Explanation", "Reference", "Decisions"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([TOP / "scripts" / "docs", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@needs("docs")
def test_the_site_loads_nothing_from_elsewhere_and_leads_to_what_is_beside_docs(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert FETCHED.findall(path.read_text()) == [], path
    source = SITE["extra"]["source"]
    assert f'href="{source}/blob/main/CHANGELOG.md"' in (site / "guides" / "upgrading.html").read_text()


@needs("docs")
@needs("chromium")
def test_search_finds_a_page_of_a_site_that_was_opened_as_a_file(site: Path) -> None:
    with sync_playwright() as playwright, launched(playwright) as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(
            (site / "index.html").as_uri() + "?q=apsw"
        )  # a page that is not ready would forget what is typed
        found = page.locator(".md-search-result__link[href*='0002-apsw']").first
        found.click(timeout=30_000)
        expect(page).to_have_url(re.compile(r"^file:.*/decisions/0002-apsw[^/]*\.html"))
        assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []


@needs("docs")
@needs("chromium")
def test_diagrams_are_drawn_by_what_the_site_has_itself(site: Path) -> None:
    if not (site / "assets" / "javascripts" / "mermaid.min.js").exists():
        pytest.skip("npm has no Mermaid for us here, so the diagrams stay text")
    with sync_playwright() as playwright, launched(playwright) as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name, many in (("concepts", 3), ("durability", 1)):
            page.goto((site / "explain" / f"{name}.html").as_uri())
            drawn = page.locator("div.mermaid")  # the theme keeps the picture in a shadow of it
            expect(drawn).to_have_count(many, timeout=30_000)
            assert page.evaluate(
                "[...document.querySelectorAll('div.mermaid')].every(one => one.clientHeight > 50)"
            )
        assert [url for url in asked if not url.startswith("file:")] == []
