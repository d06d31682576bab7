"""`clawdforge open`: an address that logs in once, in the browser or printed."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.api.harness import Server
from tests.cli.kit import Cli

pytestmark = pytest.mark.slow
OWN = {"Sec-Fetch-Site": "same-origin"}


def parts_of(url: str, server: str) -> dict[str, str]:
    parts = urlsplit(url)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{server}/ui/"
    return {name: values[0] for name, values in parse_qs(parts.fragment, strict_parsing=True).items()}


def test_the_printed_address_logs_in_once(cli: Cli, server: Server) -> None:
    done = cli("open", "--print")
    assert "within a minute" in done.stderr
    found = parts_of(done.stdout.strip(), server.url)
    assert set(found) == {"code"}
    client = server.client(**OWN)
    assert client.post("/login", json=found).json()["app_name"] == "local"
    assert client.get("/sessions").status_code == 200
    assert server.client(**OWN).post("/login", json=found).status_code == 401


def test_a_session_is_named_by_its_whole_id(cli: Cli, server: Server) -> None:
    made = json.loads(cli("-p", "--output-format", "json", "echo apples").stdout)["session_id"]
    found = parts_of(cli("open", made[:8], "--print", "--quiet").stdout.strip(), server.url)
    assert found["session"] == made
    assert cli("open", "nothing-like-it", "--print", code=4).stdout == ""


def test_the_browser_gets_the_address_and_the_terminal_does_not(
    tmp_path: Path, make: Callable[..., Cli], server: Server
) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    program.chmod(0o755)
    done = make(server.data_dir, BROWSER=str(program))("open")
    assert done.stdout == ""
    assert "code=" not in done.stderr
    assert parts_of(seen.read_text(), server.url)["code"].startswith("cfc_")


def test_without_a_browser_the_address_is_printed(
    make: Callable[..., Cli], server: Server, tmp_path: Path
) -> None:
    cli = make(server.data_dir, PATH=str(tmp_path), DISPLAY="", WAYLAND_DISPLAY="", BROWSER="")
    assert parts_of(cli("open").stdout.strip(), server.url)["code"]


def test_a_server_is_started_when_none_runs(alone: Cli) -> None:
    done = alone("open", "--print")
    assert "started a server" in done.stderr
    assert "/ui/#code=cfc_" in done.stdout
