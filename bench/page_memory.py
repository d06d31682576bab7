"""What a browser's process for the page takes after a long stream, with no debugger attached.

A debugger keeps what the page has let go, so the page runs by itself here: a browser is started with a login
link, and only its processes are looked at. What a process has for itself alone is counted, all of it.
"""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx2

from bench.kit import cpu_secs, new_session

START_SECONDS: Final = 10
"""Much longer than a browser takes to open the page."""
REST_SECONDS: Final = 30
"""After so long a browser has cleared away what it put off while there was much to do."""
PRIVATE: Final = re.compile(r"^Private_(?:Clean|Dirty): +(\d+) kB$", re.MULTILINE)


def private_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(found) for found in PRIVATE.findall(text)) / 1024


def find_renderers(profile: str) -> list[int]:
    """The processes that a browser with this profile has for its pages."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            if "--type=renderer" in words and profile in words:
                found.append(int(folder.name))
    return found


@contextmanager
def browser_at(address: str) -> Iterator[str]:
    """A browser that shows a page and answers to nobody. Its processes are known by their profile."""
    with tempfile.TemporaryDirectory(prefix="clawdforge-profile-", ignore_cleanup_errors=True) as profile:
        flags = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        program = shutil.which("chromium")
        assert program, "chromium is not installed"
        command = [program, *flags, f"--user-data-dir={profile}", "--window-size=1400,900", address]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                yield profile
            finally:
                process.terminate()
                process.wait(timeout=30)


def measure_process(http: httpx2.Client, seconds: float, prompt: str) -> tuple[list[float], float]:
    """Stream for so long, one turn after the other: the megabytes after each turn, and those after a rest."""
    session_id = new_session(http)
    code = http.post("/login/codes", json={}).raise_for_status().json()["code"]
    url = str(http.base_url).rstrip("/")
    meanwhile = []
    with browser_at(f"{url}/ui/#code={code}&session={session_id}") as profile:
        time.sleep(START_SECONDS)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            http.post(f"/sessions/{session_id}/turn", json={"prompt": prompt}).raise_for_status()
            meanwhile.append(private_mb(find_busiest(profile)))
        time.sleep(REST_SECONDS)
        assert cpu_secs(find_busiest(profile)) > len(meanwhile) / 2, "the page did not follow the session"
        return meanwhile, private_mb(find_busiest(profile))


def find_busiest(profile: str) -> int:
    """The page's own: a browser has a process or two for pages that nobody sees."""
    return max(find_renderers(profile), key=cpu_secs)
