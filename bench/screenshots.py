"""Pictures of the page for the docs, drawn from a conversation with the demo agent; a changed one fails.

    ./scripts/screenshots [--accept]

What tells the time is left out or always the same, and the fonts are those of DejaVu, which CI installs.
Another browser draws everything a little otherwise, so pictures are only compared with those that a browser
of the same version has drawn with the same fonts, as is noted beside them. `tests/page/test_pictures.py` does
the same.
"""

import argparse
import base64
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import httpx2
from playwright.sync_api import Browser, Page, sync_playwright

from bench.kit import server

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
NOTE: Final = FOLDER / "drawn-by.json"
SHARE: Final = 0.002
"""How much of a picture may differ: smoothed edges are not the same twice."""

PROMPTS: Final = ("Hello!", "Show me a plan", "Now use a tool, please", "What did I say?")
FACTS: Final = """for (const one of document.querySelectorAll('.end-facts')) {
    one.textContent = '9:41 AM · 1.2 s · 42 tokens' }"""
CALM: Final = """.facts, .session .about span:last-child, .status, .tool .state,
.ask-head .quiet {
    visibility: hidden !important }
* { font-family: "DejaVu Sans" !important }
code, pre, pre *, kbd, .mono { font-family: "DejaVu Sans Mono" !important }"""
PROBE: Final = """() => {
    const pen = document.createElement('canvas').getContext('2d');
    return ['DejaVu Sans', 'DejaVu Sans Mono'].map(name => {
        pen.font = `40px "${name}", serif`;
        return pen.measureText('A calm page, drawn the same each time: 0123456789').width;
    });
}"""
COMPARE: Final = """async ([before, after]) => {
    const read = async text => {
        const picture = new Image();
        picture.src = `data:image/png;base64,${text}`;
        await picture.decode();
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [picture.width, picture.height];
        const pen = canvas.getContext('2d');
        pen.drawImage(picture, 0, 0);
        return pen.getImageData(0, 0, picture.width, picture.height);
    };
    const [old, now] = [await read(before), await read(after)];
    if (old.width !== now.width || old.height !== now.height) return 1;
    let count = 0;
    for (let at = 0; at < old.data.length; at += 4) {
        const far = [0, 1, 2].some(part => Math.abs(old.data[at + part] - now.data[at + part]) > 24);
        count += far ? 1 : 0;
    }
    return count / (old.width * old.height);
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="keep the pictures as they are now")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--disable-gpu"])
        if args.accept:
            keep(draw_all(browser, Path(folder)), describe(browser))
            return
        if why := why_not_compared(browser):
            print(why)
            return
        changed = find_changed(browser, draw_all(browser, Path(folder)))
    for name in changed:
        print(f"{name} looks different; if it should, run ./scripts/screenshots --accept")
    sys.exit(bool(changed))


def describe(browser: Browser) -> dict[str, Any]:
    """What decides how a picture is drawn: the browser, but for its small mends, and the fonts."""
    blank = browser.new_page()
    note = {"browser": browser.version.split(".")[0], "fonts": blank.evaluate(PROBE)}
    blank.close()
    return note


def why_not_compared(browser: Browser) -> str | None:
    if NOTE.exists() and json.loads(NOTE.read_text()) == describe(browser):
        return None
    return "the pictures are drawn by another browser or with other fonts than these: not compared"


def find_changed(browser: Browser, drawn: dict[str, bytes]) -> list[str]:
    blank = browser.new_page()
    changed = [name for name, picture in drawn.items() if is_other(blank, FOLDER / name, picture)]
    blank.close()
    return changed


def draw_all(browser: Browser, folder: Path) -> dict[str, bytes]:
    data = folder / "data"
    with server(data, CLAWDFORGE_LOG_LEVEL="warning") as (http, _pid):
        return draw(browser, http, (data / "local.token").read_text().strip())


def draw(browser: Browser, http: httpx2.Client, token: str) -> dict[str, bytes]:
    talk = tell(http, "A first talk", PROMPTS, "approve_all")
    tell(http, "Tidy the workshop", ["Hello!"], "approve_all")
    asking = tell(http, "Before the release", [], "ask")
    http.post(f"/sessions/{asking}/turns", json={"prompt": "Ask for permission"}).raise_for_status()
    until(http, f"/sessions/{asking}", lambda row: row["activity"] == "waiting")
    url = str(http.base_url).rstrip("/")
    return {
        "session.png": shoot(browser, url, token, f"#/s/{talk}", (1180, 760)),
        "session-dark.png": shoot(browser, url, token, f"#/s/{talk}", (1180, 760), color_scheme="dark"),
        "inbox-phone.png": shoot(browser, url, token, "#/inbox", (390, 760)),
    }


def tell(http: httpx2.Client, title: str, prompts: Any, mode: str) -> str:
    body = {"agent": "demo", "title": title, "permission_mode": mode}
    session_id = str(http.post("/sessions", json=body).raise_for_status().json()["session_id"])
    for prompt in prompts:
        http.post(f"/sessions/{session_id}/turn", json={"prompt": prompt}).raise_for_status()
    return session_id


def until(http: httpx2.Client, path: str, found: Any) -> None:
    end = time.monotonic() + 30
    while not found(http.get(path).json()):
        assert time.monotonic() < end, f"{path} never was as it should be"
        time.sleep(0.05)


def shoot(browser: Browser, url: str, token: str, where: str, size: tuple[int, int], **options: Any) -> bytes:
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce", bypass_csp=True, **options
    )
    headers = {"Sec-Fetch-Site": "same-origin"}
    assert context.request.post(f"{url}/login", data={"token": token}, headers=headers).ok
    page = context.new_page()
    page.goto(f"{url}/ui/{where}")
    page.locator(".status[data-state=live]").wait_for(state="attached")
    page.locator(".end.last, .ask").last.wait_for()
    page.add_style_tag(content=CALM)
    page.evaluate("document.fonts.ready.then(() => true)")
    page.wait_for_timeout(500)
    page.evaluate(FACTS)
    picture = page.screenshot(animations="disabled", caret="hide")
    context.close()
    return picture


def is_other(blank: Page, path: Path, picture: bytes) -> bool:
    if not path.exists():
        return True
    texts = [base64.b64encode(content).decode() for content in (path.read_bytes(), picture)]
    return bool(blank.evaluate(COMPARE, texts) > SHARE)


def keep(drawn: dict[str, bytes], note: dict[str, Any]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, picture in drawn.items():
        (FOLDER / name).write_bytes(picture)
    NOTE.write_text(json.dumps(note, indent=2) + "\n")


if __name__ == "__main__":
    main()
