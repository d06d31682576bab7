"""Real proxies before real nodes, with the configuration that the project hands out."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import httpx2

from tests.api.harness import until

TOP: Final = Path(__file__).parents[2]
CADDYFILE: Final = TOP / "deploy" / "nodes" / "Caddyfile"
GUIDE: Final = TOP / "docs" / "guides" / "proxy.md"
PATHS: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
NGINX: Final = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {blocks}
}}
"""


@contextlib.contextmanager
def run_caddy(nodes: Sequence[str], folder: Path) -> Iterator[str]:
    site = f"http://127.0.0.1:{_free_port()}"
    env = {**os.environ, "CLAWDFORGE_SITE": site, "CLAWDFORGE_NODES": " ".join(nodes), "HOME": str(folder)}
    # Its administration is off by an option that the test adds: there may be another Caddy on the machine.
    own = folder / "Caddyfile"
    own.write_text("{\n\tadmin off\n}\n" + CADDYFILE.read_text())
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(own)]
    with _running(command, env, site, folder):
        yield site


@contextlib.contextmanager
def run_nginx(nodes: Sequence[str], folder: Path) -> Iterator[str]:
    site = f"http://127.0.0.1:{(port := _free_port())}"
    (config := folder / "nginx.conf").write_text(
        NGINX.format(folder=folder, blocks=fit_nginx(GUIDE.read_text(), nodes, port))
    )
    command = ["nginx", "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")]
    with _running(command, {**os.environ, "PATH": PATHS}, site, folder):
        yield site


def fit_nginx(guide: str, nodes: Sequence[str], port: int) -> str:
    """The blocks of the guide, for these nodes, without a certificate."""
    upstream = re.search(r"^upstream .*?^}$", guide, re.MULTILINE | re.DOTALL)
    server = re.search(r"^server \{.*?^}$", guide, re.MULTILINE | re.DOTALL)
    assert upstream is not None
    assert server is not None
    lines = [line for line in upstream[0].splitlines() if " server " not in line]
    (pattern,) = {line.partition("10.0.0.")[2][1:] for line in upstream[0].splitlines() if " server " in line}
    servers = [f"    server {node}{pattern.removeprefix(':8800')}" for node in nodes]
    alone = re.sub(r"^ +(ssl_\w+|http2) .*\n", "", server[0], flags=re.MULTILINE)
    alone = alone.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    return "\n".join([lines[0], *servers, *lines[1:], alone.replace("http://127.0.0.1:8800", "http://nodes")])


@contextlib.contextmanager
def _running(command: list[str], env: dict[str, str], site: str, folder: Path) -> Iterator[None]:
    program = shutil.which(command[0], path=PATHS)
    assert program is not None
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen([program, *command[1:]], env=env, stdout=log, stderr=log)
    try:
        until(lambda: _answers(site), f"the start of {command[0]}")
        yield
    finally:
        process.terminate()
        process.wait(10)


def _answers(site: str) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return httpx2.get(f"{site}/readyz", verify=False).status_code == 200
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
