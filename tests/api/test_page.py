"""The page's files: served to anybody, under a policy that lets only them run, cached by their sum."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest

from clawdforge.http.web_page.files import KINDS, TAKEN, WORKER, leave_notes, read_tree
from clawdforge.http.web_page.routers import Page
from tests.api.harness import Server

FOLDER: Final = Path(__file__).parents[2] / "src" / "clawdforge" / "page"
NAMES: Final = sorted(
    path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.suffix in KINDS
)
MAX_PACKED: Final = 150 * 1024


@pytest.fixture
def browser(server: Server) -> Iterator[httpx2.Client]:
    with server.client(Accept="text/html", **{"Accept-Encoding": "gzip"}) as client:
        yield client


def sealed_folder(browser: httpx2.Client) -> str:
    found = re.search(r'src="(v/[0-9a-f]{16}/)page\.js"', browser.get("/ui/").text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(("path", "place"), [("/", "ui/"), ("/ui", "ui/")])
def test_a_browser_is_led_to_the_page_by_a_relative_address(
    browser: httpx2.Client, path: str, place: str
) -> None:
    reply = browser.get(path, follow_redirects=False)
    assert (reply.status_code, reply.headers["location"]) == (307, place)


def test_a_program_finds_nothing_at_the_root(server: Server) -> None:
    assert server.client(Accept="application/json").get("/").status_code == 404


def test_the_page_needs_no_token_and_runs_nothing_but_its_own_files(browser: httpx2.Client) -> None:
    reply = browser.get("/ui/")
    assert reply.status_code == 200
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == "no-cache"


def test_no_script_or_style_stands_in_the_page_itself(browser: httpx2.Client) -> None:
    text = browser.get("/ui/").text
    assert not re.findall(r"<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=|javascript:", text)
    assert not re.findall(r"""(?:href|src)="(?:/|https?:)""", text)


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_served_for_ever_and_with_its_kind(browser: httpx2.Client, name: str) -> None:
    reply = browser.get(f"/ui/{sealed_folder(browser)}{name}")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == KINDS[Path(name).suffix]
    assert "immutable" in reply.headers["cache-control"]
    if name not in {"index.html", WORKER}:
        assert reply.content == leave_notes(name, (FOLDER / name).read_bytes())


def test_what_says_for_how_long_a_file_holds_comes_last(browser: httpx2.Client) -> None:
    """So that headers that were cut off never make a browser keep half a file for ever."""
    names = [name.lower() for name, _ in browser.get(f"/ui/{sealed_folder(browser)}app/main.js").headers.raw]
    kept = min(names.index(b"etag"), names.index(b"cache-control"))
    assert kept > max(names.index(b"content-length"), names.index(b"content-type"))


def test_what_a_browser_has_already_is_not_sent_again(browser: httpx2.Client) -> None:
    etag = browser.get("/ui/").headers["etag"]
    again = browser.get("/ui/", headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")


def test_a_caller_who_cannot_unpack_gets_the_plain_file(server: Server) -> None:
    reply = server.client(**{"Accept-Encoding": "identity"}).get("/ui/app/main.js")
    assert "content-encoding" not in reply.headers
    assert reply.content == leave_notes("app/main.js", (FOLDER / "app/main.js").read_bytes())
    assert reply.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../pyproject.toml",
        "/ui/%2e%2e/http/app.py",
        "/ui/..%2f..%2fhttp%2fpage.py",
        "/ui/v/0123456789abcdef/../../../http/app.py",
        "/ui/v/0123456789abcdef/%2e%2e/%2e%2e/http/app.py",
        "/ui//etc/passwd",
        "/ui/%2fetc%2fpasswd",
        "/ui/app",
        "/ui/app/",
        "/ui/vendor/vendor.toml",
        "/ui/app/main.js%00.css",
        "/ui/APP/main.js",
    ],
)
def test_nothing_else_can_be_read(browser: httpx2.Client, path: str) -> None:
    assert browser.get(path, follow_redirects=False).status_code == 404


def test_all_files_together_are_small() -> None:
    """Every module and every style is in what a visit takes: `tests/unit/test_page_join.py` counts them."""
    sent = read_tree(FOLDER, None).files
    sizes = {name: len(sent[name].packed or b"") for name in TAKEN}
    assert all(sizes.values())
    assert sum(sizes.values()) <= MAX_PACKED, sizes


def test_what_a_visit_takes_is_sent_packed(browser: httpx2.Client) -> None:
    folder = sealed_folder(browser)
    for name in TAKEN:
        reply = browser.get(f"/ui/{folder}{name}")
        assert reply.headers["content-encoding"] == "gzip", name
    assert "v/0/" not in browser.get("/ui/").text


def test_the_page_can_be_had_as_its_files_lie_there(browser: httpx2.Client) -> None:
    text = browser.get("/ui/apart").text
    assert re.search(r'src="v/[0-9a-f]{16}/app/main\.js"', text)
    assert text.count('rel="stylesheet"') == len(list((FOLDER / "styles").glob("*.css")))


def test_comments_stay_on_the_server_and_lines_keep_their_numbers() -> None:
    source = (
        b"// @ts-check\n/** of two\n * lines */\nconst a = `/** x */`; // kept\n  /** @param x */\nf(a);\n"
    )
    assert leave_notes("app/a.js", source) == b"\n\n\nconst a = `/** x */`; // kept\n\nf(a);\n"
    assert leave_notes("vendor/a.js", source) == source
    for name in NAMES:
        whole = (FOLDER / name).read_bytes()
        sent = leave_notes(name, whole)
        assert sent.count(b"\n") == whole.count(b"\n"), name


async def test_a_changed_file_changes_the_folder_that_the_page_names(tmp_path: Path) -> None:
    (tmp_path / "app" / "stream").mkdir(parents=True)
    (tmp_path / "index.html").write_text('<script src="v/0/app/main.js"></script>')
    (tmp_path / "app" / "main.js").write_text('import { a } from "./a.js";\nf(a);\n')
    (tmp_path / "app" / "a.js").write_text("export const a = 1;\n")
    (tmp_path / "app" / "stream" / "worker.js").write_text("self.onmessage = f;\n")
    (tmp_path / "secret.txt").write_text("no kind of ours")
    page = Page(tmp_path)
    tree = await page.newest()
    lies_there = {"index.html", "app/main.js", "app/a.js", WORKER}
    assert set(tree.files) == {*lies_there, "apart.html", "page.js", "page.css"}
    assert tree.files["index.html"].content.decode() == f'<script src="v/{tree.seal}/page.js"></script>'
    assert b"const a = 1;" in tree.files["page.js"].content
    assert await page.newest() is tree
    (tmp_path / "app" / "a.js").write_text("export const a = 22;\n")
    changed = await page.newest()
    assert changed.seal != tree.seal
    assert b"const a = 22;" in changed.files["page.js"].content


def test_a_module_says_what_it_knows_and_is_short() -> None:
    for name in NAMES:
        if not name.startswith("app/"):
            continue
        lines = (FOLDER / name).read_text().splitlines()
        first = lines[1] if lines[0] == "// @ts-check" else lines[0]
        assert first.startswith("// "), f"{name} begins with what it knows"
        assert len(lines) <= 250, f"{name} has {len(lines)} lines"


def test_no_component_makes_markup_of_text() -> None:
    """Text becomes markup in one module, through the sanitiser."""
    sinks = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    for name in NAMES:
        if name.startswith("app/"):
            assert not sinks.search((FOLDER / name).read_text()), name
