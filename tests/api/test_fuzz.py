"""Thousands of requests made from the server's own description: no failure of ours, nothing undocumented.

Here they are the same ones in every run. `scripts/fuzz SECONDS` makes others, as many as the time allows, and
prints the seed.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.harness import ADMIN_TOKEN, Server

HOOKS = "tests.api.fuzz_hooks"
TOP = Path(__file__).parent.parent.parent
SECONDS = int(os.environ.get("CLAWDFORGE_TEST_FUZZ_SECS") or 0)
SEARCH = ("--max-time", str(SECONDS))
FIXED = ("--generation-deterministic", "--max-examples", "2")
CHECKS = (
    "no_failure_of_our_own",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
)
OPERATOR = "^/(admin|metrics|healthz|readyz)"
ENDLESS = ("/api/sessions/events", "/api/session/stream")
"""Streams that end only with their reader, who would wait for that."""


@pytest.mark.slow
@pytest.mark.timeout(SECONDS * 4 + 600)
@pytest.mark.parametrize("who", ["app", "operator"])
def test_requests_made_from_the_description(start: Callable[..., Server], who: str, tmp_path: Path) -> None:
    server = start(MAX_LIVE_SESSIONS="1000000", TURN_TIMEOUT_SECS="5")
    token = ADMIN_TOKEN if who == "operator" else server.app().token
    choice = "--include-path-regex" if who == "operator" else "--exclude-path-regex"
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", "--no-color"]
    options = [*(SEARCH if SECONDS else FIXED), "--checks", ",".join(CHECKS), "--continue-on-failure"]
    options += [word for path in ENDLESS for word in ("--exclude-path", path)]
    done = subprocess.run(
        [*command, *options, choice, OPERATOR, "--header", f"Authorization: Bearer {token}"],
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(TOP)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4000:]
    assert "generated" in done.stdout, done.stdout[-4000:]
