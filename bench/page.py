"""What the web page costs a browser: how fast it opens, scrolls, keeps up with a flood, and comes back.

    .venv/bin/python -m bench.page [--only open,scroll,flood,back,memory] [--hour]

A real Chromium against a real server with the scripted agent. Main-thread CPU is the thread's own clock, so
what else runs on the machine counts in the other figures only.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx2
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.history import seed_lengths
from bench.kit import new_session, server
from bench.page_memory import measure_process
from clawdforge.http.web_page.files import TAKEN, read_tree

MESSAGES: Final = 10_000
RATE: Final = 5_000
SECONDS: Final = 10
ROUNDS: Final = 5
MEMORY_SECONDS: Final = 120
MEMORY_RATE: Final = 200
"""Pieces a second, for a long time: more than models say, and the machine can do other work."""
PART: Final = (
    "\n\n## A part\n\nWith **bold** words, `code` and a list:\n\n- one\n- two\n\n```python\nx = 1\n```\n\n"
)
FOLDER: Final = Path(__file__).parents[1] / "src" / "clawdforge" / "page"

OPENED: Final = """wanted => new Promise(done => {
    const look = () => {
        const rows = document.querySelectorAll('.text-entry .md');
        const there = rows.length && rows[rows.length - 1].textContent.includes(wanted);
        if (!there) return requestAnimationFrame(look);
        requestAnimationFrame(() => setTimeout(() => done(performance.now())));
    };
    look();
})"""

WATCH: Final = """() => {
    globalThis.seen = { longest: 0, keys: [] };
    new PerformanceObserver(list => {
        for (const task of list.getEntries()) seen.longest = Math.max(seen.longest, task.duration);
    }).observe({ type: 'longtask' });
    new PerformanceObserver(list => {
        for (const one of list.getEntries()) if (one.name === 'keydown') seen.keys.push(one.duration);
    }).observe({ type: 'event', durationThreshold: 16 });
}"""

SCROLL: Final = """async () => {
    const scroller = document.querySelector('.transcript');
    const frame = () => new Promise(requestAnimationFrame);
    const topOf = row => row.getBoundingClientRect().top;
    let worst = 0, most = 0, steps = 0, still = 0;
    while (still < 40) {
        const before = scroller.scrollTop;
        scroller.scrollTop = Math.max(0, before - 1500);
        await frame();
        const edge = scroller.getBoundingClientRect().top;
        const rows = [...document.querySelectorAll('[data-row]')];
        const held = rows.find(row => row.getBoundingClientRect().bottom > edge);
        const top = topOf(held);
        for (let at = 0; at < 4; at++) {
            await frame();
            if (held.isConnected) worst = Math.max(worst, Math.abs(topOf(held) - top));
            most = Math.max(most, document.querySelectorAll('[data-row]').length);
        }
        still = scroller.scrollTop === 0 ? still + 1 : 0;
        steps += 1;
    }
    return { worst, most, steps };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="open,scroll,flood,back,memory")
    parser.add_argument("--hour", action="store_true", help="stream for an hour instead of two minutes")
    args = parser.parse_args()
    wanted = set(args.only.split(","))
    row("all files, gzipped", f"{packed_size() / 1024:.1f} KB", "150 KB", held=packed_size() <= 150 * 1024)
    with tempfile.TemporaryDirectory(prefix="clawdforge-bench-") as folder:
        data = Path(folder) / "data"
        long_one = asyncio.run(seed_lengths(data, MESSAGES, 1))[0][0]
        with sync_playwright() as playwright, server(data, CLAWDFORGE_LOG_LEVEL="warning") as (http, pid):
            path = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu"])
            run = Bench(browser, http, data)
            if "open" in wanted:
                measure_open(run, long_one)
            if "scroll" in wanted:
                measure_scroll(run, long_one)
            if "flood" in wanted:
                measure_flood(run)
            if "memory" in wanted:
                measure_memory(run, 3600 if args.hour else MEMORY_SECONDS)
            if "back" in wanted:
                measure_back(run, data, pid)
            browser.close()


def row(name: str, found: str, aim: str, *, held: bool) -> None:
    print(f"{name:44} {found:>26}   aim {aim:>10}: {'held' if held else 'MISSED'}", flush=True)


def packed_size() -> int:
    sent = read_tree(FOLDER, None).files
    return sum(len(sent[name].packed or b"") for name in TAKEN)


class Bench:
    """A browser, and the app that it is logged in to."""

    def __init__(self, browser: Browser, http: httpx2.Client, data: Path) -> None:
        self.browser = browser
        self.http = http
        self.url = str(http.base_url).rstrip("/")
        self._token = (data / "local.token").read_text().strip()

    def page(self, where: str = "") -> Page:
        context = self.browser.new_context(viewport={"width": 1400, "height": 900})
        headers = {"Sec-Fetch-Site": "same-origin"}
        assert context.request.post(f"{self.url}/login", data={"token": self._token}, headers=headers).ok
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{self.url}/ui/{where}")
        return page


class Thread:
    """The main thread of a page: its CPU, by its own clock."""

    def __init__(self, page: Page) -> None:
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._cdp.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu_ms(self) -> float:
        return self._read("TaskDuration") * 1000

    def _read(self, name: str) -> float:
        metrics = self._cdp.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == name))


def measure_open(run: Bench, session_id: str) -> None:
    """By a browser that never saw the page, by one that has its files, and by a click in the page."""
    last = run.http.get(f"/sessions/{session_id}/messages", params={"tail": 1, "limit": 1}).json()
    words = last["messages"][-1]["content"][:60]
    found: dict[str, list[tuple[float, float]]] = {"for the first time": [], "again": [], "from the list": []}
    for _ in range(ROUNDS):
        page = run.page("icon.svg")  # a browser that has begun, with nothing of the page
        thread = Thread(page)
        for name in ("for the first time", "again"):
            page.goto(f"{run.url}/healthz")
            before = thread.cpu_ms()
            page.goto(f"{run.url}/ui/#/s/{session_id}", wait_until="commit")
            wall = page.evaluate(OPENED, words)
            found[name].append((wall, thread.cpu_ms() - before))
            page.wait_for_timeout(500)
        page.evaluate("location.hash = '#/inbox'")
        page.wait_for_selector(".asks", state="attached")
        page.wait_for_timeout(300)
        before = thread.cpu_ms()
        begun = page.evaluate(f"location.hash = '#/s/{session_id}'; performance.now()")
        wall = page.evaluate(OPENED, words) - begun
        found["from the list"].append((wall, thread.cpu_ms() - before))
        page.context.close()
    for name, rounds in found.items():
        wall, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
        row(f"open a session of 10,000 {name}", f"{wall:.0f} ms", "800 ms", held=wall <= 800)
        row("    main-thread CPU", f"{cpu:.0f} ms", "250 ms", held=cpu <= 250)


def measure_scroll(run: Bench, session_id: str) -> None:
    page = run.page(f"#/s/{session_id}")
    page.wait_for_selector(".text-entry")
    page.mouse.move(700, 400)
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(500)
    found = page.evaluate(SCROLL)
    row("scroll back through all: rows mounted", f"{found['most']}", "200", held=found["most"] <= 200)
    row(
        "    anchor error",
        f"{found['worst']:.2f} px, {found['steps']} steps",
        "1 px",
        held=found["worst"] <= 1,
    )
    page.context.close()


def flood(seconds: float, rate: int = RATE) -> str:
    """A prompt that makes the agent send so many pieces in a second, with markup among them."""
    part = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": PART}}
    step = f"chunks {rate // 10 - 1} 8\nupdate {json.dumps(part)}\nat "
    return "".join(f"{step}{at / 10}\n" for at in range(1, round(seconds * 10) + 1)) + "echo THE END"


def measure_flood(run: Bench) -> None:
    session_id = new_session(run.http)
    page = run.page(f"#/s/{session_id}")
    prompt = page.get_by_label("Prompt", exact=True)
    prompt.wait_for()
    run.http.post(f"/sessions/{session_id}/turn", json={"prompt": "echo warm"})
    page.evaluate(WATCH)
    run.http.post(f"/sessions/{session_id}/turns", json={"prompt": flood(SECONDS)}).raise_for_status()
    begun, pressed = time.monotonic(), 0
    while is_running(run, session_id):
        prompt.press("a")
        pressed += 1
        page.wait_for_timeout(150)
        assert time.monotonic() - begun < 120, "the flood does not end"
    ended = time.monotonic()
    page.locator(".text-entry", has_text="THE END").wait_for(state="attached")
    behind = time.monotonic() - ended
    found = page.evaluate("seen")
    keys = sorted([*found["keys"], *[16] * (pressed - len(found["keys"]))])
    p95 = keys[int(len(keys) * 0.95)] if keys else 0
    sent = last_turn(run, session_id)["duration_ms"] / 1000
    pieces = RATE * SECONDS
    print(f"a flood of {pieces} pieces in {sent:.1f} s: {pieces / sent:.0f} a second; {pressed} keys")
    row("    longest task", f"{found['longest']:.0f} ms", "100 ms", held=found["longest"] <= 100)
    row("    key to paint, p95", f"{p95:.0f} ms", "100 ms", held=p95 <= 100)
    row("    all rendered after the end", f"{behind:.1f} s", "5 s", held=behind <= 5)
    page.context.close()


def last_turn(run: Bench, session_id: str) -> dict[str, Any]:
    turns = run.http.get(f"/sessions/{session_id}/turns").raise_for_status().json()["turns"]
    return dict(turns[-1])


def is_running(run: Bench, session_id: str) -> bool:
    found = run.http.get(f"/sessions/{session_id}").json()
    return bool(found["queued_turns"]) or found["running_turn"] is not None


def measure_memory(run: Bench, seconds: float) -> None:
    """By a browser of its own: this one has a debugger, which keeps what the page has let go."""
    meanwhile, rested = measure_process(run.http, seconds, flood(min(30, seconds), MEMORY_RATE))
    minutes = f"{seconds / 60:.0f} min of streaming"
    row(f"the page's process after {minutes}", f"{rested:.0f} MB", "100 MB", held=rested <= 100)
    shown = [f"{found:.0f}" for found in meanwhile[:: max(1, len(meanwhile) // 12)]]
    print(f"    meanwhile, with what is not cleared away yet: {', '.join(shown)} MB")


def measure_back(run: Bench, data: Path, pid: int) -> None:
    session_id = new_session(run.http)
    page = run.page(f"#/s/{session_id}")
    live = page.locator(".status[data-state=live]")
    live.wait_for()
    port = run.url.rsplit(":", 1)[1]
    os.kill(pid, signal.SIGKILL)
    page.locator(".status[data-state=waiting]").wait_for()
    with server(data, CLAWDFORGE_PORT=port, CLAWDFORGE_LOG_LEVEL="warning"):
        wait_for(lambda: httpx2.get(f"{run.url}/readyz", verify=False).status_code == 200)
        begun = time.monotonic()
        live.wait_for()
        took = time.monotonic() - begun
        row("live after the server is back", f"{took:.2f} s", "3 s", held=took <= 3)
    page.context.close()


def wait_for(found: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if found():
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.01)
    sys.exit("the server does not come back")


if __name__ == "__main__":
    main()
