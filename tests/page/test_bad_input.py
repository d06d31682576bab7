"""What others wrote, at its worst, through everything that draws it: in one page of one browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from tests.api.harness import Server
from tests.needs import needs
from tests.page.kit import Tabs
from tests.page.payloads import ADDRESSES, markdown, markup

pytestmark = needs("chromium")
SCRIPTS: Final = Path(__file__).with_name("bad_input.js")


@pytest.fixture(scope="module")
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """One page for all of them. Whatever it complains of fails the module."""
    tabs = Tabs(browser, server)
    found = tabs.tab(None, "apart").page
    found.evaluate(f"() => {{ {SCRIPTS.read_text()} return bench.setUp() }}")
    yield found
    assert found.evaluate("window.__fired === undefined"), "a payload ran"
    tabs.close()
    assert not tabs.findings(), "\n".join(tabs.findings())


def test_no_markdown_makes_anything_run(page: Page) -> None:
    assert page.evaluate("texts => bench.drawMarkdown(texts)", list(markdown())) == []
    assert page.evaluate("window.__fired === undefined")


def test_nothing_that_an_agent_says_of_itself_makes_anything_run(page: Page) -> None:
    """Prompts, file names, tool names, paths, diffs, terminals, plans, questions, options, errors."""
    assert page.evaluate("texts => bench.drawRows(texts)", [*markup(), *ADDRESSES]) == []
    assert page.evaluate("window.__fired === undefined")


def test_what_takes_the_short_way_looks_as_the_long_way_would_make_it(page: Page) -> None:
    """A paragraph of nothing but words is not read as markdown; every other text is."""
    plain = [
        "Some words.",
        "Two\nlines, (of) course: 3.5 - 2",
        "a-b 'c' \"d\" 1/2 x=y #5 5) e!\n",
        "zß水🌍 שלום\n\n",
    ]
    marked = [
        "- a",
        "1. a",
        "a\n- b",
        "# a",
        "a\n===",
        "a\n---",
        "    a",
        "a\n\nb",
        "*a*",
        "a  \nb",
        "www.a.b",
    ]
    marked += [
        "http://a.b",
        "a@b.c",
        "&amp;",
        "<b>",
        "a\n1) b",
        "+ a",
        "a | b\n--|--",
        "\\*",
        "~~a~~",
        "",
        " \n",
    ]
    assert page.evaluate("texts => bench.compareWays(texts)", plain) == [[True, True]] * len(plain)
    found = page.evaluate("texts => bench.compareWays(texts)", marked)
    assert [short for short, _ in found] == [False] * len(marked)


def test_text_is_cut_into_blocks_and_not_one_letter_is_lost(page: Page) -> None:
    """A line of 32 MB, with and without its end; 100,000 items; fences that never close; lone surrogates."""
    found = page.evaluate("bench.cutBlocks()")
    assert [(name, same, small) for name, same, small in found if not (same and small)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("brackets", "[" * 16_000),
        ("stars", "*a **a " * 2_000),
        ("quotes", ">" * 4_000 + " x"),
        ("items", "- " * 2_000 + "x"),
        ("ticks", "`" + "``" * 4_000),
        ("tables", "|" * 8_000 + "\n" + "|-" * 4_000),
        ("links", "[x](" * 2_000),
        ("tags", "<a " * 4_000),
        ("escapes", "\\" * 16_000),
    ],
)
def test_a_text_that_is_hard_to_read_is_read(page: Page, name: str, text: str) -> None:
    """Nothing of it is lost, whether it was understood or is shown as it is."""
    drawn = page.evaluate(
        "text => { bench.place.replaceChildren(bench.markdown.renderLong(text)); return 1 }", text
    )
    assert drawn == 1, name
    page.evaluate("bench.place.replaceChildren()")


def test_directions_nothings_and_halves_of_letters_are_seen_or_harmless(page: Page) -> None:
    text, terminal = page.evaluate("bench.showMarks()")
    assert all(mark in text for mark in ("⟨U+202E⟩gnp", "b⟨U+2066⟩c", "d⟨U+202E⟩e", "\ufffd"))
    assert terminal == "last"


def test_a_terminal_of_one_long_line_is_drawn_at_once(page: Page) -> None:
    """By its length, and not by the square of it."""
    plain, redrawn, *_ = page.evaluate("bench.drawTerminals()")
    assert plain == redrawn == 8 * 1024 * 1024
    page.evaluate("bench.place.replaceChildren()")


ODD: list[Any] = [None, 0, "", "x", [], {}, [None], {"a": None}, -1, 1e300, True]


def test_events_that_nobody_expected_change_nothing(page: Page) -> None:
    """Unknown types, updates without a call, fields of any shape, times that are none or run backwards."""
    assert page.evaluate("odd => bench.takeOdd(odd)", ODD) == [True, True]
